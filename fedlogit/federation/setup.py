"""From a spec, a data set and a split to a federation of clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from fedlogit.data import UNKNOWN, Dataset, card, load, with_probes
from fedlogit.errors import DataError, FedlogitError
from fedlogit.federation.client import Client
from fedlogit.federation.device_data import DeviceData, on_device
from fedlogit.federation.executor import Executor
from fedlogit.federation.federation import Federation
from fedlogit.federation.leakage import check_disjoint
from fedlogit.federation.ledger_only import LedgerOnly
from fedlogit.federation.native import check_native
from fedlogit.federation.newcomers import first_weights, newcomer
from fedlogit.models.layers import BatchStatNorm
from fedlogit.partition import Split, make_split
from fedlogit.partition.stratified import stratified
from fedlogit.rng import rng, torch_rng
from fedlogit.spec import RunSpec

if TYPE_CHECKING:
    from fedlogit.methods import Method

__all__ = ["choose_device", "divide", "federate", "open_data", "samples_at_a_time"]


def choose_device(name: str) -> torch.device:
    """Return the device called `name`: ``auto``, ``cpu``, ``cuda`` or ``cuda:0``.

    Raises:
        FedlogitError: if it is not there.
    """
    available = ["cpu"]
    if torch.cuda.is_available():
        available += ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if name == "auto":
        return torch.device(available[1] if len(available) > 1 else "cpu")
    if name not in available:
        raise FedlogitError(
            f"device = {name!r} is not there (this machine has: {', '.join(available)})"
        )
    return torch.device(name)


def divide(spec: RunSpec, dataset: Dataset) -> Split:
    """Return the division of a data set that a spec implies."""
    labels, classes = dataset.strata
    other = spec.public.dataset if spec.public else None
    return make_split(
        labels[labels != UNKNOWN],
        classes,
        spec.partition,
        spec.clients,
        spec.seed,
        public=spec.public,
        train_size=spec.train_size,
        groups=dataset.group_train,
        length=spec.text.length if spec.text else None,
        foreign=card(other).train if other else 0,
    )


def open_data(spec: RunSpec, folder: Path, split: Path | None) -> tuple[Dataset, Split]:
    """Return a spec's data set and its division.

    Args:
        spec: A resolved spec.
        folder: Where prepared data sets are.
        split: ``indices.npz``, which must be what the spec implies; None only divides anew.

    Returns:
        The data set, with that of the public set joined on if it is another one, and its division.

    Raises:
        DataError: if the file is damaged, or another division than the spec's.
    """
    dataset = load(spec.dataset, folder, spec.text)
    if spec.public and spec.public.dataset:
        dataset = with_probes(dataset, spec.public.dataset, folder)
    implied = divide(spec, dataset)
    if split is not None and (differs := Split.load(split).difference(implied)):
        raise DataError(
            f"{split} is not the division that the spec implies: {differs}; delete it, so that it"
            " is made again"
        )
    return dataset, implied


def federate(
    spec: RunSpec,
    method: Method,
    dataset: Dataset,
    split: Split,
    device: torch.device,
    executor: Executor,
    on_task: Callable[[], None] = lambda: None,
) -> Federation:
    """Build the federation: data on the device, a client per part of the split.

    Args:
        spec: A resolved spec.
        method: The method it names: what it holds out, and whether there is a global model.
        dataset: The data set it names.
        split: Its division; indices into the training split.
        device: Where to compute.
        executor: Who runs clients.
        on_task: Called whenever a client finished a stage.
    """
    if method.needs_public and spec.public is not None:
        check_disjoint(dataset, split, private=not spec.public.overlap)
    test = None
    if spec.test_size is not None:
        test = stratified(dataset.test_strata, spec.test_size, rng(spec.seed, "test"), "test_size")
    data = on_device(dataset, device, test)
    if spec.kernel == "native":
        check_native(spec, data.shape, device)
    clients = [
        _client(spec, i, data, np.asarray(part), method.holdout)
        for i, part in enumerate(split.clients)
    ]
    server = _server(spec, method, data)
    models = [client.model for client in (clients if server is None else [*clients, server])]
    data.batch = samples_at_a_time(spec, data, models)
    kind = LedgerOnly if spec.ledger_only else Federation
    federation = kind(spec, data, split, clients, executor, server, on_task)
    federation.liars = method.liars
    return federation


def samples_at_a_time(spec: RunSpec, data: DeviceData, models: Sequence[nn.Module]) -> int:
    """Return the samples of a forward pass without gradients.

    On a GPU small passes wait for the launches of kernels. A model that normalises by the
    statistics of whatever it sees answers otherwise in a larger pass, so it keeps the reference's;
    so do stacked models, of which a pass has several already.
    """
    layers = (layer for model in models for layer in model.modules())
    if data.device.type != "cuda" or spec.kernel == "stacked":
        return data.batch
    return data.batch if any(isinstance(m, BatchStatNorm) for m in layers) else data.wide


def _server(spec: RunSpec, method: Method, data: DeviceData) -> Client | None:
    """Build the global model: client 0's at first, or a student of its own; None if unused."""
    nothing = np.empty(0, np.int64)
    if method.student:
        assert spec.server is not None
        weights = torch_rng(spec.seed, "init/server")
        taught = spec.server.optimizer
        return newcomer(spec, data, -1, spec.server.model, weights, nothing, optimizer=taught)
    if method.one_model:
        return newcomer(spec, data, -1, spec.models[0], first_weights(spec, 0), nothing)
    return None


def _client(
    spec: RunSpec, index: int, data: DeviceData, private: np.ndarray, holdout: float
) -> Client:
    """Build a client, which keeps a share of its samples out of training."""
    held = None
    if holdout:
        labels = data.strata[private]
        size = max(1, round(holdout * len(private)))
        if size >= len(private):
            raise FedlogitError(
                f"client {index} has {len(private)} samples, too few to hold out {holdout:.0%}"
            )
        chosen = stratified(labels, size, rng(spec.seed, "holdout", index))
        held = private[chosen]
        private = np.delete(private, chosen)
    call = spec.models[index % len(spec.models)]
    return newcomer(spec, data, index, call, first_weights(spec, index), private, held)
