"""One free rider among IID clients (CELM §6.2, Figure 3b)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.errors import FedlogitError
from fedlogit.partition.roles import WithFreeRider, class_order, free_rider_samples, iid_parts

__all__ = ["Fr"]


class Fr(WithFreeRider):
    """The last client holds few samples of common classes; clients 0..N-2 share the rest IID.

    CELM §6.1 says that a free rider "mainly carries labels that are globally well-represented" and
    publishes no sizes. Here it has real labels, trains honestly, and holds `share` of n / N
    samples. The author's older generator of free riders is `fr_repeat`.

    Attributes:
        common: Classes of the free rider.
        share: Its samples, as a share of an average client's.
    """

    common: Annotated[int, Field(gt=0)] = 2
    share: Annotated[float, Field(gt=0, lt=1)] = 0.1

    def check_classes(self, classes: int) -> None:
        """Refuse parameters that need more classes; see `Partition.check_classes`."""
        self.at_most("common", classes, "the number of classes")

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        if clients < 2:
            raise FedlogitError(f"clients = {clients}: fr needs at least 2")
        size = round(self.share * len(labels) / clients)
        few = free_rider_samples(labels, class_order(classes, seed)[: self.common], size, seed)
        rest = np.setdiff1d(np.arange(len(labels)), few)
        return [*iid_parts(rest, clients - 1, seed), few]

    def notes(self, labels: np.ndarray, parts: list[np.ndarray]) -> tuple[str, ...]:
        """Add who the free rider is."""
        note = f"{self}: client {len(parts) - 1} is the free rider"
        return (*super().notes(labels, parts), note)
