"""One point of growth: growth_point.py SETTINGS, with sizes as JSON; prints what a round takes.

Random images of 8 x 8 and random labels, since speed does not depend on them. A process each, so
that its peak memory is its own.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import psutil
import torch

BORN = psutil.Process().create_time()

from benchmarks import federations
from benchmarks.federations import random_images
from fedlogit import methods
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.federation import Federation
from fedlogit.spec import RunSpec


class Watch(WorkerPool):
    """Remembers when the first minibatch or task began."""

    first = 0.0

    def check(self) -> None:
        if not self.first:
            self.first = time.time()
        super().check()


def spec_of(sizes: dict[str, int]) -> RunSpec:
    """Return a run in which clients train, say what they think of public samples, and distil."""
    spec = {
        "dataset": "digits", "clients": sizes["clients"], "partition": f"iid({sizes['samples']})",
        "public": {"size": sizes["public"], "stratified": False}, "method": "average",
        "models": [f"mlp(hidden=[{sizes['width']}, {sizes['width']}])"], "seed": 0,
        "rounds": 1000, "batch": 32, "local": {"epochs": 1},
        "optimizer": {"name": "sgd", "lr": 0.1},
    }  # fmt: skip
    return methods.resolve(RunSpec.read(spec, "growth"))


def started(sizes: dict[str, int], engine: str) -> tuple[Federation, methods.Method, Watch]:
    """Return a federation whose clients have their first weights."""
    pool, classes = Watch(sizes["workers"]), sizes["classes"]
    samples = sizes["clients"] * sizes["samples"] + sizes["public"]
    images = random_images(samples, classes, (8, 8, 1), classes)
    cpu = torch.device("cpu")
    return *federations.started(spec_of(sizes), images, cpu, engine, pool), pool


def measure(sizes: dict[str, int], engine: str = "auto", rounds: int = 3) -> dict[str, float]:
    """Return seconds of a round, peak memory, parameters, and seconds until the first step."""
    fed, method, pool = started(sizes, engine)
    seconds = []
    for round_ in range(1, rounds + 1):
        begin = time.perf_counter()
        fed.start_round(round_)
        method.round(fed, round_)
        seconds.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB on Linux
    return {
        "seconds": min(seconds[1:]),
        "memory_mib": peak / 1024,
        "parameters": float(fed.clients[0].vector.numel()),
        "seconds_to_first_step": pool.first - BORN,
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
