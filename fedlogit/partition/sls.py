"""Step label skew: classes and samples grow from client to client (CELM §5)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.partition.base import Partition
from fedlogit.partition.tools import by_class, class_counts, legacy_generator, share_classes

__all__ = ["Sls"]


class Sls(Partition):
    """Client i owns the first ``m0 + i * floor((K - m0) / (N - 1))`` classes of a random order.

    Class sets are nested; each class is shuffled and split equally among its owners. Classes past
    the last client's count (EMNIST: 1 of 47) are given to the last client, so all data is used.

    CELM does not define the split. The label sets in its author's public code
    (asimukaye/spectralfuse) are random and not nested, see `sls_random`; that variant stays below
    the distances CELM's Table 4 prints, while this one has all three. The class order is drawn per
    seed, which CELM does not say; `sls_fixed` has one order for all.

    Attributes:
        m0: Classes of the first client: 2, and 10 for EMNIST.
    """

    m0: Annotated[int, Field(gt=0)] = 2

    def check_classes(self, classes: int) -> None:
        """Refuse parameters that need more classes; see `Partition.check_classes`."""
        self.at_most("m0", classes, "the number of classes")

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        rng = legacy_generator(seed)
        rank = np.argsort(self.order(classes, rng))
        sizes = [*class_counts(self.m0, classes, clients)[:-1], classes]
        owners = [[i for i, size in enumerate(sizes) if rank[k] < size] for k in range(classes)]
        return share_classes(by_class(labels, classes), owners, clients, rng)

    def order(self, classes: int, rng: np.random.RandomState) -> np.ndarray:
        """Return the classes (K,) in the order in which clients own them."""
        return rng.permutation(classes)
