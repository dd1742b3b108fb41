"""How fast a GPU trains one kind of model: gpu_point.py ENGINE CASE… [--begin TIME].

Random images and labels, since speed does not depend on them. Prints, for each case, how many
minibatches of a client it trains on in a second, and the peak of its memory there, as JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks import federations
from benchmarks.federations import random_images
from fedlogit import methods
from fedlogit.cli import run_main
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.errors import FedlogitError
from fedlogit.federation import Federation
from fedlogit.runs.machine import device_name
from fedlogit.runs.setup import choose_device
from fedlogit.spec import RunSpec

_SAMPLES = 256  # of a client


@dataclass(frozen=True)
class Case:
    """A model and how it is trained, as a paper does.

    Attributes:
        title: What tables call it.
        model: As a spec names it.
        shape: Height, width and channels of images.
        clients: How many train.
        batch: Size of a minibatch.
        optimizer: Its settings.
        changes: Of the spec, beside these.
    """

    title: str
    model: str
    shape: tuple[int, int, int]
    clients: int
    batch: int
    optimizer: dict[str, Any]
    changes: dict[str, Any] = field(default_factory=dict)


_GRAY, _COLOUR = (28, 28, 1), (32, 32, 3)
_SGD, _ADAM = {"name": "sgd", "lr": 0.1}, {"name": "adam", "lr": 0.001}
_ADAMW = {"name": "adamw", "lr": 0.001, "weight_decay": 5e-4}
_CROPS = {"augment": "crop_flip"}
_BF16 = _CROPS | {"precision": "bf16"}
_IMAGENET = "resnet18(stem='imagenet', batch_stats=True)"
CASES = {
    "mlp_net": Case("CELM's perceptron", "mlp_net", _GRAY, 5, 128, _SGD),
    "tf_cnn": Case("CELM's CNN", "tf_cnn", _COLOUR, 5, 128, _SGD, _CROPS),
    "lenet": Case("LeNet", "lenet", _GRAY, 20, 128, _ADAM),
    "lenet_bn": Case("LeNet with batch norm", "lenet_bn", _COLOUR, 5, 32, _ADAMW, _CROPS),
    "resnet_light": Case("FedOL's ResNet8", "resnet_light(1)", _COLOUR, 10, 64, _ADAM, _CROPS),
    "resnet18": Case("TallyTrain's ResNet-18", _IMAGENET, _COLOUR, 10, 32, _ADAMW, _CROPS),
    "resnet18_bf16": Case("the same in bfloat16", _IMAGENET, _COLOUR, 10, 32, _ADAMW, _BF16),
    "resnet18_cifar": Case("Who to Trust?'s ResNet-18", "resnet18(stem='cifar')", _COLOUR, 20, 128,
                           _ADAM, _CROPS),
    "resnet18_cifar_bf16": Case("the same in bfloat16", "resnet18(stem='cifar')", _COLOUR, 20, 128,
                                _ADAM, _BF16),
}  # fmt: skip


def started(case: Case, engine: str, device: torch.device, batches: int) -> Federation:
    """Return a federation of which a phase is so many minibatches of each client."""
    spec = {
        "dataset": "digits", "clients": case.clients, "partition": f"iid({_SAMPLES})",
        "method": "fedavg", "models": [case.model], "seed": 0, "rounds": 10**6,
        "batch": case.batch, "local": {"steps": batches}, "optimizer": case.optimizer,
    } | case.changes  # fmt: skip
    resolved = methods.resolve(RunSpec.read(spec, f"case {case.title}"))
    images = random_images(case.clients * _SAMPLES, 100, case.shape, classes=10)
    return federations.started(resolved, images, device, engine, WorkerPool(1))[0]


def rate(fed: Federation, batches: int, begin: float, seconds: float) -> float:
    """Return minibatches a second, all clients together, of phases that begin within a time.

    Until it begins the GPU is kept busy, so that who is ready first does not measure it alone.
    """
    phases, round_ = 0, 2
    while (now := time.time()) < begin + seconds:
        if now < begin:
            phases, since = 0, now
        elif not phases:
            since = now
        round_ += 1
        fed.start_round(round_)
        fed.train_private()  # ends with reading the losses, which waits for the GPU
        phases += now >= begin
    return phases * batches * len(fed.clients) / (time.time() - since)


def measure(name: str, engine: str, device: torch.device, begin: float, seconds: float) -> dict:
    """Return what was measured of a case, or why it cannot be."""
    batches = 4 if "resnet18" in name else 20
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    try:
        fed = started(CASES[name], engine, device, batches)
        for round_ in (1, 2):
            fed.start_round(round_)
            fed.train_private()
        found = rate(fed, batches, max(begin, time.time()), seconds)
    except (FedlogitError, RuntimeError) as error:
        return {"case": name, "engine": engine, "error": str(error).partition("\n")[0]}
    peak = torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else 0.0
    return {
        "case": name, "engine": engine, "processes": 1, "batches_per_second": found,
        "memory_mib": peak, "device": device_name(device), "torch": torch.__version__,
    }  # fmt: skip


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine")
    parser.add_argument("cases", nargs="+", choices=CASES)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--begin", type=float, default=0.0, help="Unix time at which all begin")
    parser.add_argument("--seconds", type=float, default=2.0)
    args = parser.parse_args(argv)
    device = choose_device(args.device)
    torch.set_num_threads(1)
    for name in args.cases:
        found = measure(name, args.engine, device, args.begin, args.seconds)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    run_main(main)
