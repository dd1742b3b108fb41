"""Writes a workload once, for all contestants: arrays, clients, first weights, minibatches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.federations import federation

__all__ = ["export"]


def export(spec: dict[str, Any], data: Path, rounds: int, folder: Path) -> dict[str, float]:
    """Write what `peers/protocol.py` reads into `folder`.

    Args:
        spec: The run.
        data: Where prepared data sets are.
        rounds: For how many rounds the order of minibatches is needed.
        folder: Where to; made if missing.

    Returns:
        Its samples a round, and its floating-point operations a round in products.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fed, _ = federation(spec, data, "loop", 1)
    source, model = fed.data, fed.clients[0].model
    pad = getattr(model, "pad", 0)
    _samples(folder, "", source.inputs(torch.arange(len(source.labels))), source.labels, pad)
    tests = slice(0, len(source.x_test))
    _samples(folder, "_test", source.test_inputs(tests), source.test_labels[tests], pad)
    weights = [p.detach().numpy() for p in model.parameters()]
    _numbered(folder / "weights.npz", weights)
    _numbered(folder / "clients.npz", [c.private.numpy() for c in fed.clients])
    for round_ in range(1, rounds + 1):
        fed.round = round_
        orders = [fed._batches("private", c, c.samples) for c in fed.clients]
        _numbered(folder / f"order{round_}.npz", [torch.cat(o).numpy() for o in orders])
    return _settle(folder, spec, fed, weights, pad)


def _settle(
    folder: Path, spec: dict[str, Any], fed: Any, weights: list[np.ndarray], pad: int
) -> dict[str, float]:
    source, how = fed.data, fed.spec
    np.save(folder / "images.npy", source.x.permute(0, 2, 3, 1).numpy())
    settings = {
        "batch": how.batch, "rate": how.optimizer.lr, "pad": pad,
        "mean": list(source.mean), "std": list(source.std),
    }  # fmt: skip
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "spec.json").write_text(json.dumps(spec))
    samples = sum(c.samples for c in fed.clients)
    return {"samples": samples, "operations": samples * _operations(weights)}


def _operations(weights: list[np.ndarray]) -> float:
    """Return the operations of a sample's step: outputs, gradients of weights, and of inputs.

    Nobody needs the gradient of the first layer's inputs.
    """
    sizes = [w.size for w in weights[::2]]
    return 2.0 * (3 * sum(sizes) - sizes[0])


def _samples(folder: Path, which: str, x: torch.Tensor, y: torch.Tensor, pad: int) -> None:
    np.save(folder / f"x{which}.npy", F.pad(x, [pad] * 4).flatten(1).numpy())
    np.save(folder / f"y{which}.npy", y.numpy())


def _numbered(path: Path, arrays: list[np.ndarray]) -> None:
    np.savez(path, **{str(i): array for i, array in enumerate(arrays)})
