"""IID: every client holds a random sample of the pool (Who to Trust? §4.3; controls)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedlogit.partition.base import Partition
from fedlogit.rng import rng

__all__ = ["Iid"]


class Iid(Partition):
    """Permute the samples and cut them into N equal parts, which differ by at most one sample.

    CELM's IID row (App. B.1) is ``dir_client(100)`` instead.

    Attributes:
        size: Keep at most this many samples per client; None keeps all.
    """

    by_class: ClassVar[bool] = False

    size: Annotated[int, Field(gt=0)] | None = None

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        order = rng(seed, "partition").permutation(len(labels))
        return [part[: self.size] for part in np.array_split(order, clients)]
