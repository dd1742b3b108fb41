"""Writes a workload once, for all implementations: arrays, clients, first weights, minibatches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.federations import federation
from benchmarks.operations import operations
from benchmarks.workloads import Workload
from fedlogit.federation.client_tasks import batches

__all__ = ["export"]


def export(workload: Workload, data: Path, rounds: int, folder: Path) -> dict[str, float]:
    """Write what `peers/protocol.py` reads into `folder`.

    Args:
        workload: What is measured.
        data: Where prepared data sets are.
        rounds: For how many rounds the order of minibatches is needed.
        folder: Where to; made if missing.

    Returns:
        Its samples a repetition, and its floating-point operations a repetition in products.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fed, method = federation(workload.spec, data, "loop", 1)
    settings = _settings(workload, fed, method)
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "spec.json").write_text(json.dumps(workload.spec))
    _weights(folder, fed, shared=workload.spec["same_init"])
    tests = slice(0, len(fed.data.x_test))
    _samples(folder, "_test", fed, fed.data.test_inputs(tests), fed.data.test_labels)
    if workload.kind in ("test", "maximise"):
        return _size(workload, fed, [], settings)
    _clients(folder, fed, images="transforms" in workload.ways)
    orders = [_orders(folder, r, workload, fed, settings) for r in range(1, rounds + 1)]
    return _size(workload, fed, orders[-1], settings)


def _settings(workload: Workload, fed: Any, method: Any) -> dict[str, Any]:
    how = fed.spec
    return {
        "kind": workload.kind, "model": how.models[0].name, "clients": len(fed.all_clients),
        "cohort": how.participation.number if how.participation else len(fed.all_clients),
        "batch": how.batch, "optimizer": how.optimizer.name, "rate": how.optimizer.lr,
        "decay": how.optimizer.weight_decay, "augment": how.augment == "crop_flip",
        "shape": list(fed.data.shape), "classes": fed.classes, "pad": _pad(fed),
        "mean": list(fed.data.mean), "std": list(fed.data.std),
        "probes": getattr(method, "probes_per_round", 0),
        "label_weight": getattr(method, "label_weight", 0.0),
        "steps": getattr(method, "steps", 0), "penalty": getattr(method, "penalty", 0.0),
        "ascent": getattr(method, "rate", 0.0),
    }  # fmt: skip


def _pad(fed: Any) -> int:
    return int(getattr(fed.all_clients[0].model, "pad", 0))


def _weights(folder: Path, fed: Any, *, shared: bool) -> None:
    """Write the first weights of each client; one for all where they are the same."""
    for i, client in enumerate(fed.all_clients[:1] if shared else fed.all_clients):
        _numbered(folder / f"weights{i}.npz", [p.detach() for p in client.model.parameters()])


def _clients(folder: Path, fed: Any, *, images: bool) -> None:
    """Write everybody's samples, a file each, so that nobody maps more than is asked for."""
    parts = {str(c.index): c.private for c in fed.all_clients}
    if len(fed.public):
        parts["_public"] = fed.public
    for name, index in parts.items():
        _samples(folder, name, fed, fed.data.inputs(index), fed.data.labels[index])
        if images:
            np.save(folder / f"images{name}.npy", fed.data.x[index].permute(0, 2, 3, 1).numpy())


def _samples(folder: Path, which: str, fed: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    if hasattr(fed.all_clients[0].model, "pad"):  # a perceptron takes rows
        x = F.pad(x, [_pad(fed)] * 4).flatten(1)
    np.save(folder / f"x{which}.npy", x.numpy())
    np.save(folder / f"y{which}.npy", y.numpy())


def _orders(
    folder: Path, round_: int, workload: Workload, fed: Any, settings: dict[str, Any]
) -> list[list[torch.Tensor]]:
    """Write who is there in a round, in which order samples come, and which public ones."""
    fed.start_round(round_)
    private = [batches(fed.context, "private", c, c.samples) for c in fed.clients]
    _batches(folder / f"order{round_}.npz", fed, private)
    if workload.kind == "distil":
        public = [batches(fed.context, "distil", c, len(fed.public)) for c in fed.clients]
        _batches(folder / f"distil{round_}.npz", fed, public)
    if workload.kind == "vote":
        place = {int(index): i for i, index in enumerate(fed.public)}
        probes = [place[int(index)] for index in fed.probes(settings["probes"])]
        np.save(folder / f"probes{round_}.npy", probes)
    return private


def _batches(path: Path, fed: Any, orders: Sequence[list[torch.Tensor]]) -> None:
    """Write each client's order, and where its minibatches end."""
    arrays: dict[str, np.ndarray] = {}
    for client, order in zip(fed.clients, orders, strict=True):
        arrays[str(client.index)] = torch.cat(order).numpy()
        arrays[f"{client.index}_ends"] = np.cumsum([len(batch) for batch in order])
    np.savez(path, **arrays)


def _size(
    workload: Workload, fed: Any, orders: list[list[torch.Tensor]], settings: dict[str, Any]
) -> dict[str, float]:
    """Return the samples that models see in a repetition, and its operations."""
    private = sum(len(batch) for order in orders for batch in order)
    samples = {
        "average": private,
        "distil": private + 2 * len(fed.public) * len(fed.clients),
        "vote": private + 2 * settings["probes"] * len(fed.clients),
        "test": len(fed.data.x_test) * len(fed.clients),
        "maximise": (len(fed.clients) + 1) * fed.classes * settings["steps"],
    }[workload.kind]
    found = operations(workload.kind, fed, orders, settings)
    return {"samples": samples, "operations": found}


def _numbered(path: Path, arrays: Sequence[torch.Tensor]) -> None:
    np.savez(path, **{str(i): array.numpy() for i, array in enumerate(arrays)})
