"""How a client comes to be: an architecture, weights from an address, samples, an optimizer."""

from __future__ import annotations

import numpy as np
import torch

from fedlogit import models
from fedlogit.component import ComponentRef
from fedlogit.engine.client import Client
from fedlogit.engine.device_data import DeviceData
from fedlogit.spec import Optimizer

__all__ = ["build_client"]


def build_client(
    architecture: ComponentRef,
    data: DeviceData,
    index: int,
    weights: torch.Generator,
    private: np.ndarray | torch.Tensor,
    optimizer: Optimizer,
    held: np.ndarray | None = None,
) -> Client:
    """Return a client that has not trained yet.

    Args:
        architecture: Its model.
        data: The data set on its device.
        index: Its number; -1 is the server.
        weights: Source of its first weights.
        private: Indices of its training samples.
        optimizer: Its optimizer's settings.
        held: Indices of its held-out samples.
    """
    model = models.build(architecture, data.shape, data.classes, weights)
    none = np.empty(0, dtype=np.int64)
    return Client(
        index=index,
        model=model.to(data.device),
        architecture=str(architecture),
        private=torch.as_tensor(private, dtype=torch.int64, device=data.device),
        validation=torch.as_tensor(
            none if held is None else held, dtype=torch.int64, device=data.device
        ),
        optimizer=optimizer,
    )
