"""A workload's federation, as fedlogit sets it up, on one of its engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from fedlogit import data, methods
from fedlogit.engine.float32 import configure_float32_matmul
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.federation import Federation
from fedlogit.methods import Method
from fedlogit.runs.setup import divide, federate, sample_shape
from fedlogit.runs.workloads import choose_engines
from fedlogit.spec import RunSpec

__all__ = ["federation"]


def federation(
    spec: dict[str, Any], folder: Path, engine: str, workers: int
) -> tuple[Federation, Method]:
    """Return a federation whose clients have their first weights, and its method.

    Args:
        spec: The run.
        folder: Where prepared data sets are.
        engine: ``loop``, ``native``, ``stacked`` or ``unpadded``.
        workers: Threads; each computes with one.
    """
    torch.set_num_threads(1)
    cpu = torch.device("cpu")
    configure_float32_matmul(cpu)
    resolved = methods.resolve(RunSpec.read(spec, "benchmark"))
    method = methods.get(resolved.method)
    dataset = data.load(resolved.dataset, folder, resolved.text)
    engines = choose_engines(resolved, method, sample_shape(dataset), cpu.type, engine)
    split = divide(resolved, dataset)
    fed = federate(resolved, method, dataset, split, cpu, WorkerPool(workers), engines)
    method.init(fed)
    return fed, method
