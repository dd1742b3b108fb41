"""Step label skew with random label sets: the public code's variant (CELM §5)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.partition.base import Partition
from fedlogit.partition.tools import (
    by_class,
    class_counts,
    legacy_generator,
    owners_of,
    share_classes,
)

__all__ = ["SlsRandom"]


class SlsRandom(Partition):
    """Client i draws ``m0 + i * floor((K - m0) / (N - 1))`` classes; owners share a class equally.

    This follows the CELM author's public code (asimukaye/spectralfuse). It is not the split of
    CELM's tables: over hundreds of seeds its distances from uniform stay below those of Table 4,
    which `sls` meets. A class that nobody draws is lost, and the notes say which.

    Attributes:
        m0: Classes of the first client.
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
        sizes = class_counts(self.m0, classes, clients)
        sets = [rng.choice(classes, size, replace=False) for size in sizes]
        return share_classes(by_class(labels, classes), owners_of(sets, classes), clients, rng)
