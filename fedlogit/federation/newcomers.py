"""How a client comes to be: an architecture, weights from an address, samples, an optimizer."""

from __future__ import annotations

import json

import numpy as np
import torch

from fedlogit import models
from fedlogit.component import Call
from fedlogit.federation.client import Client
from fedlogit.federation.device_data import DeviceData
from fedlogit.rng import torch_rng
from fedlogit.spec import Optimizer, RunSpec

__all__ = ["first_weights", "newcomer"]


def newcomer(
    spec: RunSpec,
    data: DeviceData,
    index: int,
    call: Call,
    weights: torch.Generator,
    private: np.ndarray | torch.Tensor,
    held: np.ndarray | None = None,
    optimizer: Optimizer | None = None,
) -> Client:
    """Return a client that has not trained yet.

    Args:
        spec: The run's settings.
        data: The data set on its device.
        index: Its number; -1 is the server.
        call: Its architecture.
        weights: Source of its first weights.
        private: Indices of its training samples.
        held: Indices of its held-out samples.
        optimizer: Its optimizer, if not `spec.optimizer`.
    """
    model = models.build(call, data.shape, data.classes, weights)
    none = np.empty(0, dtype=np.int64)
    return Client(
        index=index,
        model=model.to(data.device),
        architecture=json.dumps(call.model_dump(), sort_keys=True),
        private=torch.as_tensor(private, dtype=torch.int64, device=data.device),
        validation=torch.as_tensor(
            none if held is None else held, dtype=torch.int64, device=data.device
        ),
        optimizer=optimizer or spec.optimizer,
    )


def first_weights(spec: RunSpec, client: int) -> torch.Generator:
    """Return the generator of a client's first weights; with `same_init`, everybody's."""
    return torch_rng(spec.seed, "init", 0 if spec.same_init else client)
