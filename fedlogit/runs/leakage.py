"""What a public set must not hold: private or test samples, told by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from fedlogit.data import Dataset
from fedlogit.errors import FedlogitError
from fedlogit.partition import Split

__all__ = ["check_disjoint", "twins"]

# CIFAR-100 as published has ten images in both splits and fourteen twice in the training split; of
# 5,000 public images one or two have a twin elsewhere. More than that is a mistake.
TOLERATED = 0.001


def check_disjoint(dataset: Dataset, split: Split, *, private: bool = True) -> int:
    """Return how many public samples have a twin in a private set or the test split.

    Args:
        dataset: The data set; rows are compared byte by byte, through a digest.
        split: Its division.
        private: Compare with private sets as well as with the test split.

    Raises:
        FedlogitError: if the public set is empty, or if more than one sample in a thousand has a
            twin.
    """
    if not len(split.public):
        raise FedlogitError("the public set is empty; give public: {size: n}")
    public = dataset.x_train[split.public]
    others = {"the test split": [dataset.x_test]}
    if private:
        others["private sets"] = [dataset.x_train[part] for part in split.clients]
    found = 0
    for name, arrays in others.items():
        count = twins(public, arrays)
        if count > TOLERATED * len(public):
            raise FedlogitError(
                f"{count} of {len(public)} public samples are also in {name}: what is learnt there"
                " would leak"
            )
        found += count
    return found


def twins(rows: np.ndarray, others: Iterable[np.ndarray]) -> int:
    """Return how many of `rows` are equal to a row of `others`."""
    known = {_digest(row) for array in others for row in array}
    return sum(_digest(row) in known for row in rows)


def _digest(row: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(row).data, digest_size=16).digest()
