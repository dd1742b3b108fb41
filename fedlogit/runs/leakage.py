"""Private or test samples in the public set, found by their content."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fedlogit.data import Dataset
from fedlogit.errors import FedlogitError
from fedlogit.partition import Split

__all__ = ["check_disjoint", "twins"]

# CIFAR-100 as published has ten images in both splits and fourteen twice in the training split; of
# 5,000 public images one or two have a twin elsewhere. More than that is a mistake.
TOLERATED = 0.001


def check_disjoint(dataset: Dataset, split: Split, *, private: bool = True) -> None:
    """Check that next to no public sample has a twin in a private set or the test split.

    Args:
        dataset: The data set; rows are compared byte by byte.
        split: Its partition.
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
    for name, arrays in others.items():
        count = twins(public, arrays)
        if count > TOLERATED * len(public):
            raise FedlogitError(
                f"{count} of {len(public)} public samples are also in {name}: what is learnt there"
                " would leak"
            )


def twins(rows: np.ndarray, others: Iterable[np.ndarray]) -> int:
    """Return how many of `rows` are equal, byte by byte, to a row of `others`."""
    sums = _checksums(rows)
    known: set[bytes] = set()
    for array in others:
        known |= {row.tobytes() for row in array[np.isin(_checksums(array), sums)]}
    return sum(row.tobytes() in known for row in rows)


def _checksums(rows: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for equal rows and seldom for others, uint64 (n,)."""
    if not len(rows):
        return np.empty(0, np.uint64)
    data = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    words = np.pad(data, ((0, 0), (0, -data.shape[1] % 8))).view(np.uint64)
    weights = np.random.default_rng(0).integers(2**63, size=words.shape[1], dtype=np.uint64)
    return words @ (2 * weights + 1)  # modulo 2^64
