"""Contiguous: each client holds one piece of the data as they come (TallyTrain appendix I)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fedlogit.partition.base import Partition

__all__ = ["Contiguous"]


class Contiguous(Partition):
    """Cut the samples, in their order, into N pieces whose sizes differ by at most one sample.

    For a text this gives each client a run of pages: its articles are nobody else's.
    """

    random: ClassVar[bool] = False
    by_class: ClassVar[bool] = False

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        return np.array_split(np.arange(len(labels)), clients)
