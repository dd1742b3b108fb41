"""The federation of a workload or of random images, on one of fedlogit's engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedlogit import data, methods
from fedlogit.data import Dataset
from fedlogit.engine.float32 import configure_float32_matmul
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.federation import Federation
from fedlogit.methods import Method
from fedlogit.runs.setup import divide, federate
from fedlogit.runs.workloads import choose_engines
from fedlogit.spec import RunSpec

__all__ = ["federation", "random_images", "started"]


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
    resolved = methods.resolve(RunSpec.read(spec, "benchmark"))
    dataset = data.load(resolved.dataset, folder, resolved.text)
    return started(resolved, dataset, torch.device("cpu"), engine, WorkerPool(workers))


def started(
    spec: RunSpec, dataset: Dataset, device: torch.device, engine: str, pool: WorkerPool
) -> tuple[Federation, Method]:
    """Return a federation whose clients have their first weights, and its method.

    Args:
        spec: The resolved run.
        dataset: Its data.
        device: Where it computes.
        engine: ``auto``, ``loop``, ``native``, ``stacked`` or ``unpadded``.
        pool: Its threads.
    """
    configure_float32_matmul(device)
    method = methods.get(spec.method)
    engines = choose_engines(spec, method, device.type, engine)
    fed = federate(spec, method, dataset, divide(spec, dataset), device, pool, engines)
    method.init(fed)
    return fed, method


def random_images(samples: int, tested: int, shape: Sequence[int], classes: int) -> Dataset:
    """Return random images and labels, since speed does not depend on them.

    Args:
        samples: The size of the training split.
        tested: The size of the test split.
        shape: Height, width and channels.
        classes: Of each there are as many, or one less.
    """
    generator = np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = generator.integers(0, 256, (n, *shape), dtype=np.uint8)
        return x, generator.permutation(np.arange(n) % classes)

    rates = (0.5,) * shape[-1]
    return Dataset("digits", "random", classes, rates, rates, *draw(samples), *draw(tested),
                   None, "", "")  # fmt: skip
