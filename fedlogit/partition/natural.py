"""The partition that the data comes with: one client per centre or user (CELM §5, FedISIC)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fedlogit.errors import FedlogitError
from fedlogit.partition.base import Partition

__all__ = ["Natural"]


class Natural(Partition):
    """Client i holds the samples of the i-th smallest group id; there is nothing random.

    For Fed-ISIC2019 the groups are the six centres of FLamby (owkin/FLamby).
    """

    random: ClassVar[bool] = False
    by_class: ClassVar[bool] = False

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        if groups is None:
            raise FedlogitError("partition natural needs a dataset with groups; this one has none")
        if len(groups) != len(labels):
            raise FedlogitError(f"{len(groups)} group ids do not match the {len(labels)} samples")
        ids = np.unique(groups)
        if len(ids) != clients:
            raise FedlogitError(
                f"clients = {clients}: partition natural has one client per group, {len(ids)} here"
            )
        return [np.flatnonzero(groups == group) for group in ids]
