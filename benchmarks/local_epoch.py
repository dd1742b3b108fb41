#!/usr/bin/env python3
"""One local epoch, side by side with plain PyTorch: python benchmarks/local_epoch.py.

Two workloads: CELM's five Fashion-MNIST clients (Dir(0.05), MLP, SGD) and Who to Trust's twenty
MNIST clients (two classes each, LeNet, Adam). Ways of doing the same epoch, from the same weights
and in the same minibatch order, timed in turn so that a drifting machine hits all alike:

- ``transforms``: torchvision data set, PIL transforms, DataLoader (the usual script);
- ``dataloader``: normalised tensors in a TensorDataset and a DataLoader;
- ``tensors``: a loop that slices normalised tensors by index;
- ``fedlogit`` with ``engine = loop``: plain PyTorch, with its workers;
- ``fedlogit`` with ``engine = native``: the same in C++, where there is a compiler.

The plain ways use PyTorch as it comes, with all cores inside an operation.
"""

from __future__ import annotations

import argparse
import copy
import csv
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision import transforms
from tqdm import tqdm

from fedlogit import data, methods
from fedlogit.cli import run_main
from fedlogit.engine.float32 import f32_products
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.federation import Federation
from fedlogit.files import write_atomic
from fedlogit.partition import make_split
from fedlogit.runs.provenance import code_version, device_name
from fedlogit.runs.setup import federate, sample_shape
from fedlogit.runs.workloads import choose_engines
from fedlogit.spec import RunSpec

WORKLOADS = {
    "CELM, Fashion-MNIST": {
        "dataset": "fashion_mnist", "clients": 5, "partition": "dir_client(0.05)", "seed": 42,
        "models": ["mlp_net"], "optimizer": {"name": "sgd", "lr": 0.1},
    },
    "Who to Trust, MNIST": {
        "dataset": "mnist", "clients": 20, "partition": "k_classes(2)", "seed": 0,
        "models": ["lenet"], "optimizer": {"name": "adam", "lr": 0.001}, "public": {"size": 5000},
    },
}  # fmt: skip
BASELINES = ("transforms", "tensors")  # what goals are set against
MACHINE = "machine"
Row = dict[str, object]
COMMON = {"method": "local", "rounds": 1, "local": {"epochs": 1}, "batch": 128}


class PlainLeNet(nn.Sequential):
    """LeNet-5 from PyTorch's own layers."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip


class PlainMLP(nn.Sequential):
    """CELM's MLP, 28 x 28 padded to 32 x 32, from PyTorch's own layers."""

    def __init__(self) -> None:
        super().__init__(
            nn.ZeroPad2d(2), nn.Flatten(),
            nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
        )  # fmt: skip


class Images(Dataset):
    """Samples as torchvision serves them: a PIL image through transforms, one at a time."""

    def __init__(self, x: np.ndarray, y: np.ndarray, mean: Sequence[float], std: Sequence[float]):
        self.x, self.y = x, y
        self.to_pil = transforms.ToPILImage()
        self.transform = transforms.Compose(
            [transforms.ToTensor(), transforms.Normalize(mean, std)]
        )

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.to_pil(self.x[i])), int(self.y[i])


class Bench:
    """A workload: its data, its split, and a way to start each contestant afresh."""

    def __init__(self, name: str, folder: Path, workers: int) -> None:
        self.spec = methods.complete(RunSpec.read(COMMON | WORKLOADS[name], name))
        self.data = data.load(self.spec.dataset, folder)
        self.split = make_split(
            self.data.y_train, self.data.classes, self.spec.partition, self.spec.clients,
            self.spec.seed, public=self.spec.public,
        )  # fmt: skip
        self.pool = WorkerPool(workers)
        plain = PlainLeNet if self.spec.models[0].name == "lenet" else PlainMLP
        fed = self.federation()
        self.samples = sum(c.samples for c in fed.clients)
        self.order = [fed._batches("private", c, c.samples) for c in fed.clients]
        self.members = [c.private for c in fed.clients]
        self.start = [_copy_weights(c.model, plain()) for c in fed.clients]
        x = torch.as_tensor(self.data.x_train).permute(0, 3, 1, 2).float() / 255
        self.x = (x - self.data.mean[0]) / self.data.std[0]
        self.y = torch.as_tensor(self.data.y_train)

    def federation(self, engine: str = "loop") -> Federation:
        cpu = torch.device("cpu")
        spec, method = self.spec, methods.get(self.spec.method)
        engines = choose_engines(spec, method, sample_shape(self.data), cpu.type, engine)
        fed = federate(spec, method, self.data, self.split, cpu, self.pool, engines)
        fed.round = 1
        return fed

    def fedlogit(self, engine: str = "loop") -> tuple[float, float]:
        torch.set_num_threads(1)
        f32_products(torch.device("cpu"))
        fed = self.federation(engine)
        begin = time.perf_counter()
        fed.train_private()
        seconds = time.perf_counter() - begin
        return seconds, float(fed.evaluate().per_client.mean())

    def plain(self, batches: Callable[[int], object]) -> tuple[float, float]:
        torch.set_num_threads(os.cpu_count() or 1)
        torch.set_float32_matmul_precision("highest")
        clients = [copy.deepcopy(m) for m in self.start]
        begin = time.perf_counter()
        for i, model in enumerate(clients):
            self._epoch(model, batches(i))
        seconds = time.perf_counter() - begin
        return seconds, float(np.mean([self._accuracy(m) for m in clients]))

    def _epoch(self, model: nn.Module, batches: object) -> None:
        o = self.spec.optimizer
        kind = torch.optim.SGD if o.name == "sgd" else torch.optim.Adam
        optimizer = kind(model.parameters(), lr=o.lr)
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    @torch.no_grad()
    def _accuracy(self, model: nn.Module) -> float:
        x = torch.as_tensor(self.data.x_test).permute(0, 3, 1, 2).float() / 255
        x = (x - self.data.mean[0]) / self.data.std[0]
        y = torch.as_tensor(self.data.y_test)
        return float((model(x).argmax(1) == y).float().mean())

    def contestants(self) -> dict[str, Callable[[], tuple[float, float]]]:
        def transforms_(i: int) -> DataLoader:
            rows = self.members[i].numpy()
            images = Images(self.data.x_train[rows], self.data.y_train[rows],
                            self.data.mean, self.data.std)  # fmt: skip
            return DataLoader(images, batch_sampler=[b.tolist() for b in self.order[i]])

        def dataloader(i: int) -> DataLoader:
            rows = self.members[i]
            tensors = TensorDataset(self.x[rows], self.y[rows])
            return DataLoader(tensors, batch_sampler=[b.tolist() for b in self.order[i]])

        def tensors(i: int) -> object:
            rows = self.members[i]
            x, y = self.x[rows], self.y[rows]
            return ((x[b], y[b]) for b in self.order[i])

        ways: dict[str, Callable[[], tuple[float, float]]] = {
            "transforms": lambda: self.plain(transforms_),
            "dataloader": lambda: self.plain(dataloader),
            "tensors": lambda: self.plain(tensors),
            "fedlogit, loop": self.fedlogit,
        }
        if shutil.which("g++") or shutil.which("clang++"):
            ways["fedlogit, native"] = lambda: self.fedlogit("native")
        return ways


def _copy_weights(model: nn.Module, plain: nn.Module) -> nn.Module:
    """Give the plain network the same parameters; layers come in the same order."""
    with torch.no_grad():
        for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
            theirs.copy_(mine)
    return plain


def measure(name: str, folder: Path, workers: int, repeats: int) -> list[Row]:
    """Return a row per contestant: medians over `repeats` turns after one that is not counted.

    PIL transforms take minutes on the larger workload, so they have one turn, the last.
    """
    bench = Bench(name, folder, workers)
    contestants = bench.contestants()
    times: dict[str, list[float]] = {k: [] for k in contestants}
    accuracy: dict[str, float] = {}
    for turn in tqdm(range(repeats + 1), desc=name, unit="turn"):
        for key, go in contestants.items():
            if key == "transforms" and turn < repeats:
                continue
            seconds, accuracy[key] = go()
            if turn:
                times[key].append(seconds)
    return [
        {
            "workload": name,
            "way": key.partition(", ")[0],
            "engine": key.partition(", ")[2] or "–",
            "seconds_median": round(statistics.median(t), 3),
            "seconds_min": round(min(t), 3),
            "seconds_max": round(max(t), 3),
            "samples_per_second": round(bench.samples / statistics.median(t)),
            **{f"times_as_fast_as_{base}": ratio(times[base], t) for base in BASELINES},
            "accuracy": round(accuracy[key], 4),
            "n": len(t),
            "code": code_version(),
            MACHINE: machine(workers),
        }
        for key, t in times.items()
    ]


def ratio(baseline: Sequence[float], own: Sequence[float]) -> float:
    """Return how many times as fast a way is as a baseline.

    Each turn's ratio is of neighbours in time; their median is what we quote. A way that had fewer
    turns had the last ones.
    """
    n = min(len(baseline), len(own))
    pairs = zip(baseline[-n:], own[-n:], strict=True)
    return round(statistics.median(a / b for a, b in pairs), 2)


def machine(workers: int) -> str:
    """Return what times depend on beside the code."""
    return (
        f"{device_name(torch.device('cpu'))}, {os.cpu_count()} cores, {workers} workers; "
        f"torch {torch.__version__}, numpy {np.__version__}"
    )


def read(out: Path) -> list[Row]:
    """Return the rows of an earlier table."""
    path = out.with_suffix(".csv")
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def keep(rows: Sequence[Row], name: str, code: str, where: str) -> list[Row]:
    """Return a workload's earlier rows if this code on this machine made them; else say so."""
    found = [row for row in rows if row["workload"] == name]
    kept = [row for row in found if (row.get("code"), row.get(MACHINE)) == (code, where)]
    if len(kept) < len(found):
        dropped = len(found) - len(kept)
        print(f"{name}: {dropped} rows dropped, measured with other code or on another machine")
    return kept


def write(rows: list[Row], out: Path, workers: int) -> None:
    with write_atomic(out.with_suffix(".csv")) as temporary, temporary.open("w", newline="") as f:
        writer = csv.DictWriter(f, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    head = [key for key in rows[0] if key != MACHINE]  # the line above the table says it
    lines = [
        "# One local epoch: fedlogit beside plain PyTorch",
        "",
        f"`python benchmarks/local_epoch.py` on {machine(workers)}; float32; median of n turns.",
        "",
        "| " + " | ".join(h.replace("_", " ") for h in head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(str(row[h]) for h in head) + " |" for row in rows),
    ]
    with write_atomic(out.with_suffix(".md")) as temporary:
        temporary.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT / "data" / "prepared")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "local_epoch")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument(
        "--only",
        choices=list(WORKLOADS),
        help="keep the other workload's rows, if this code on this machine made them",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(argv)
    kept = read(args.out) if args.only else []
    rows: list[Row] = []
    for name in WORKLOADS:
        if args.only in (None, name):
            rows += measure(name, args.data, args.workers, args.repeats)
        else:
            rows += keep(kept, name, code_version(), machine(args.workers))
    write(rows, args.out, args.workers)


if __name__ == "__main__":
    run_main(main)
