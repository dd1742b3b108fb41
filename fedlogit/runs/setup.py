"""From a spec, a data set and a split to a federation of clients."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from fedlogit import partition
from fedlogit.data import Dataset, load, with_probes
from fedlogit.engine.build import build_client
from fedlogit.engine.client import Client
from fedlogit.engine.device_data import DeviceData, on_device
from fedlogit.engine.task import ClientTask
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.errors import DataError, FedlogitError
from fedlogit.federation import Federation
from fedlogit.federation.ledger_only import LedgerOnlyFederation
from fedlogit.methods import Method, number_of_adversaries
from fedlogit.partition import Split
from fedlogit.partition.stratified import stratified
from fedlogit.rng import rng, torch_rng
from fedlogit.runs.gpus import visible_gpus
from fedlogit.runs.leakage import check_disjoint
from fedlogit.runs.workloads import Engines
from fedlogit.spec import RunSpec

__all__ = ["choose_device", "divide", "federate", "open_data"]


def choose_device(name: str) -> torch.device:
    """Return the device called `name`: ``auto``, ``cpu``, ``cuda`` or ``cuda:0``.

    ``auto`` is a GPU if PyTorch can use one; a warning tells of one that it cannot, since a cluster
    would keep it for nothing.

    Raises:
        FedlogitError: if it is not there.
    """
    available = ["cpu"]
    if torch.cuda.is_available():
        available += ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if name == "auto":
        if len(available) == 1 and (gpus := visible_gpus(os.environ)):
            warnings.warn(_unusable(gpus), stacklevel=2)
        return torch.device(available[1] if len(available) > 1 else "cpu")
    if name not in available:
        raise FedlogitError(
            f"device = {name!r} is not there (this machine has: {', '.join(available)})"
        )
    return torch.device(name)


def _unusable(gpus: list[str]) -> str:
    return (
        f"device = 'auto' is the CPU, as PyTorch {torch.__version__} cannot use GPU"
        f" {', '.join(gpus)}, which is there; is its driver too old (docs/cluster.md, step 2)? If"
        " the CPU is meant, give device = 'cpu'"
    )


def divide(spec: RunSpec, dataset: Dataset) -> Split:
    """Return the partition of a data set that a spec implies."""
    return partition.divide(spec.split_spec(), dataset)


def open_data(spec: RunSpec, folder: Path, split: Path | None) -> tuple[Dataset, Split]:
    """Return a spec's data set and its partition.

    Args:
        spec: A resolved spec.
        folder: Where prepared data sets are.
        split: ``indices.npz``, which must be what the spec implies; None only divides anew.

    Returns:
        The data set, with that of the public set joined on if it is another one, and its partition.

    Raises:
        DataError: if the file is damaged, or another partition than the spec's.
        FedlogitError: if the partition leaves too few samples to validate on.
    """
    dataset = load(spec.dataset, folder, spec.text)
    if spec.public and spec.public.dataset:
        dataset = with_probes(dataset, spec.public.dataset, folder)
    implied = divide(spec, dataset)
    if split is not None and (differs := Split.load(split).difference(implied)):
        raise DataError(
            f"{split} is not the partition that the spec implies: {differs}; delete it, so that it"
            " is made again"
        )
    if spec.evaluation.validation is not None:  # before a folder is written
        partition.unused_samples(dataset, implied, spec.evaluation.validation)
    return dataset, implied


def federate(
    spec: RunSpec,
    method: Method,
    dataset: Dataset,
    split: Split,
    device: torch.device,
    pool: WorkerPool,
    engines: Engines,
    on_task: Callable[[], None] = lambda: None,
) -> Federation:
    """Build the federation: data on the device, a client per part of the split.

    Args:
        spec: A resolved spec.
        method: The method it names: what it holds out, and whether there is a global model.
        dataset: The data set it names.
        split: Its partition; indices into the training split.
        device: Where to compute.
        pool: The run's threads.
        engines: Run the clients and the server's model.
        on_task: Called whenever a client finished a phase.

    Raises:
        FedlogitError: if there is no public set, or its samples are private or tested ones, too;
            if a number does not fit the data; if adversaries share the samples that they mislabel.
    """
    if spec.public is not None:
        check_disjoint(dataset, split, private=not spec.public.overlap)
    test = _test_samples(spec, dataset)
    adversaries = number_of_adversaries(spec, method)
    validation = _validation_samples(spec, dataset, split)
    replaced = _with_replacements(spec, dataset, split, adversaries, validation)
    data = on_device(replaced, device, test)
    clients = [
        _client(spec, i, data, np.asarray(part), method.holdout)
        for i, part in enumerate(split.clients)
    ]

    def told(_task: ClientTask, _loss: float) -> None:
        on_task()

    engine = engines.clients(data, pool, spec.precision, told)
    server, own_engine = _server(spec, method, data), None
    if method.server_model:
        own_engine = engines.server(data, pool, spec.precision, told)
    data.batch = engine.prediction_batch(clients if server is None else [*clients, server])
    kind = LedgerOnlyFederation if spec.ledger_only else Federation
    return kind(
        spec,
        data,
        split,
        clients,
        engine,
        server=server,
        server_engine=own_engine,
        adversaries=adversaries,
        validation=validation if spec.evaluation.with_test else None,
    )


def _test_samples(spec: RunSpec, dataset: Dataset) -> np.ndarray | None:
    """Return which samples of the test split are tested on; None for all."""
    if spec.test_size is None:
        return None
    return stratified(dataset.test_strata, spec.test_size, rng(spec.seed, "test"), "test_size")


def _with_replacements(
    spec: RunSpec,
    dataset: Dataset,
    split: Split,
    adversaries: int,
    validation: np.ndarray | None,
) -> Dataset:
    """Return the data set with what a spec puts in place of test samples and adversaries' labels.

    Raises:
        FedlogitError: as `_with_flipped_labels`.
    """
    if validation is not None and not spec.evaluation.with_test:
        x_test, y_test = dataset.x_train[validation], dataset.y_train[validation]
        dataset = replace(dataset, x_test=x_test, y_test=y_test)
    if spec.adversaries and not spec.adversaries.of_predictions:
        dataset = _with_flipped_labels(dataset, split, adversaries)
    return dataset


def _validation_samples(spec: RunSpec, dataset: Dataset, split: Split) -> np.ndarray | None:
    """Return training samples that nobody has, to validate on; None if the spec wants none.

    Raises:
        FedlogitError: if there are fewer than it wants.
    """
    size = spec.evaluation.validation
    if size is None:
        return None
    key = "evaluation.validation"
    left = partition.unused_samples(dataset, split, size)
    labels = dataset.strata[0]
    chosen: np.ndarray = left[stratified(labels[left], size, rng(spec.seed, "validation"), key)]
    return chosen


def _with_flipped_labels(dataset: Dataset, split: Split, adversaries: int) -> Dataset:
    """Return the data set with class c as C - 1 - c in the samples of the last clients.

    Raises:
        FedlogitError: if one of these samples is an honest client's or public, too.
    """
    honest = len(split.clients) - adversaries
    flipped = np.concatenate(split.clients[honest:])
    shared = np.isin(flipped, np.concatenate([*split.clients[:honest], split.public])).sum()
    if shared:
        raise FedlogitError(
            f"adversaries.attack = 'label_flips': {shared} of the adversaries' samples are an"
            " honest client's or public, too; give a partition and a public set without overlap"
        )
    labels = np.array(dataset.y_train)
    labels[flipped] = dataset.classes - 1 - labels[flipped]
    return replace(dataset, y_train=labels)


def _server(spec: RunSpec, method: Method, data: DeviceData) -> Client | None:
    """Build the server's model: client 0's at first, or one of its own; None if unused."""
    nothing = np.empty(0, np.int64)
    if method.server_model:
        assert spec.server is not None
        weights = torch_rng(spec.seed, "init/server")
        optimizer = spec.server.optimizer or spec.optimizer
        return build_client(spec.server.model, data, -1, weights, nothing, optimizer)
    if method.global_model:
        weights = _first_weights(spec, 0)
        return build_client(spec.models[0], data, -1, weights, nothing, spec.optimizer)
    return None


def _client(
    spec: RunSpec, index: int, data: DeviceData, private: np.ndarray, holdout: float
) -> Client:
    """Build a client, which keeps a share of its samples out of training, each with its copies."""
    held = None
    if holdout:
        unique = np.unique(private)
        own = private if len(unique) == len(private) else unique
        size = max(1, round(holdout * len(own)))
        if size >= len(own):
            raise FedlogitError(
                f"client {index} has {len(own)} samples, too few to hold out {holdout:.0%}"
            )
        held = own[stratified(data.strata[own], size, rng(spec.seed, "holdout", index))]
        private = private[~np.isin(private, held)]
    architecture = spec.models[index % len(spec.models)]
    weights = _first_weights(spec, index)
    return build_client(architecture, data, index, weights, private, spec.optimizer, held)


def _first_weights(spec: RunSpec, client: int) -> torch.Generator:
    """Return the generator of a client's first weights; with `same_init`, everybody's."""
    return torch_rng(spec.seed, "init", 0 if spec.same_init else client)
