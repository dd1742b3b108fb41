"""A spec of a second's work on real data (scikit-learn's digits), for any test to change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from fedlogit import methods
from fedlogit.data import Dataset
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.federation import Federation
from fedlogit.runs import conformance
from fedlogit.runs.setup import divide, federate
from fedlogit.runs.workloads import choose_engines
from fedlogit.spec import RunSpec

SMALL = conformance.SMALL_SPEC | {"method": "average"}
# What turns it into a text: docstrings of scikit-learn, 300 tokens, sequences of 32.
TEXT = {
    "dataset": "sklearn_docs",
    "text": {"vocabulary": 300, "length": 32},
    "partition": "contiguous",
    "train_size": 300,
    "test_size": 20,
    "public": {"size": 40, "last": True},
    "models": ["tiny_gpt(layers=1, width=16, heads=2, context=32)"],
    "batch": 8,
    "optimizer": {"name": "adamw", "lr": 0.01, "clip": 1.0, "zero_nonfinite_grads": True},
}


def small_spec(**changes) -> RunSpec:
    """Return a resolved spec of a second's work on digits."""
    return methods.resolve(RunSpec.read(SMALL | changes, "test spec"))


def built(
    spec: RunSpec, data: Dataset, *, workers: int = 1, device: str = "cpu", engine: str = "loop"
) -> Federation:
    """Return a federation that has not begun."""
    method, split, pool = methods.get(spec.method), divide(spec, data), WorkerPool(workers)
    engines = choose_engines(spec, method, torch.device(device).type, engine)
    return federate(spec, method, data, split, torch.device(device), pool, engines)


def enlarged(digits: Dataset) -> Dataset:
    """Return the digits as images of 28 x 28, as LeNet takes them: of 32 x 32, without the rim.

    A pattern lies over them: in areas of one value the largest of a pooling window is a matter of
    rounding, and with it where the gradient goes.
    """
    rows, columns = np.indices((28, 28))
    pattern = ((5 * rows + 3 * columns) % 17).astype(np.uint8)[..., None]
    x_train, x_test = (
        x.repeat(4, 1).repeat(4, 2)[:, 2:30, 2:30] // 16 * 15 + pattern[:]
        for x in (digits.x_train, digits.x_test)
    )
    return replace(digits, x_train=x_train, x_test=x_test)
