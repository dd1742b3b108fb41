"""Writes a workload once, for all contestants: arrays, clients, first weights, minibatches."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.federations import federation
from benchmarks.peers.protocol import Exported
from fedlogit.federation import Federation

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))  # as peers' processes have it

from torch_models import network

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
    flat = spec["models"] == ["mlp_net"]

    def samples(which: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = F.pad(x, [pad] * 4).flatten(1) if flat else x
        np.save(folder / f"x{which}.npy", x.numpy())
        np.save(folder / f"y{which}.npy", y.numpy())
        return x

    tests = slice(0, len(source.x_test))
    samples("_test", source.test_inputs(tests), source.test_labels[tests])
    x = samples("", source.inputs(torch.arange(len(source.labels))), source.labels)
    weights = [p.detach().numpy() for p in model.parameters()]
    _numbered(folder / "weights.npz", weights)
    _numbered(folder / "clients.npz", [c.private.numpy() for c in fed.clients])
    for round_ in range(1, rounds + 1):
        fed.round = round_
        orders = [fed._batches("private", c, c.samples) for c in fed.clients]
        _numbered(folder / f"order{round_}.npz", [torch.cat(o).numpy() for o in orders])
    _settle(folder, spec, fed, pad)
    passed = sum(c.samples for c in fed.clients)
    return {"samples": passed, "operations": passed * _operations(Exported(str(folder)), x[:1])}


def _settle(folder: Path, spec: dict[str, Any], fed: Federation, pad: int) -> None:
    source, how = fed.data, fed.spec
    np.save(folder / "images.npy", source.x.permute(0, 2, 3, 1).numpy())
    settings = {
        "batch": how.batch, "rate": how.optimizer.lr, "optimizer": how.optimizer.name,
        "model": how.models[0].name.removesuffix("_net"), "augment": how.augment == "crop_flip",
        "pad": pad, "mean": list(source.mean), "std": list(source.std),
    }  # fmt: skip
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "spec.json").write_text(json.dumps(spec))


def _operations(data: Exported, x: torch.Tensor) -> float:
    """Return the operations in products of a sample's step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        network(data)(x).sum().backward()
    return float(counter.get_total_flops())


def _numbered(path: Path, arrays: list[np.ndarray]) -> None:
    np.savez(path, **{str(i): array for i, array in enumerate(arrays)})
