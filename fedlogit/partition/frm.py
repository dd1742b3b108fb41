"""A free rider beside a maverick (CELM §6.2, Figure 3c)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.errors import FedlogitError
from fedlogit.partition.base import Partition, Roles
from fedlogit.partition.roles import (
    RareClasses,
    class_order,
    classes_held,
    free_rider_samples,
    iid_parts,
    maverick_samples,
    samples_of_classes,
)

__all__ = ["Frm"]


class Frm(Partition):
    """Client 0 is as in `maverick`, the last one as in `fr`; the others share the rest IID.

    The free rider's classes are not among the rare ones. As for those two, CELM publishes no sizes.

    Attributes:
        rare: Number of rare classes, held by client 0 alone.
        rare_classes: Which ones, as in `maverick`.
        common: Classes of the free rider.
        share: Samples of the free rider, as a share of an average client's.
    """

    rare: Annotated[int, Field(gt=0)] = 3
    rare_classes: RareClasses = "last"
    common: Annotated[int, Field(gt=0)] = 2
    share: Annotated[float, Field(gt=0, lt=1)] = 0.1

    def check_classes(self, classes: int) -> None:
        """Refuse parameters that need more classes; see `Partition.check_classes`."""
        self.at_most("rare", classes - 1, "one less than the number of classes")
        self.at_most("common", classes - self.rare, "the number of classes that are not rare")

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        if clients < 3:
            raise FedlogitError(f"clients = {clients}: frm needs at least 3")
        order = class_order(classes, seed, self.rare, self.rare_classes)
        alone = maverick_samples(labels, order[-self.rare :])
        size = round(self.share * len(labels) / clients)
        few = free_rider_samples(labels, order[: self.common], size, seed)
        rest = np.setdiff1d(samples_of_classes(labels, order[: -self.rare]), few)
        return [alone, *iid_parts(rest, clients - 2, seed), few]

    def notes(self, labels: np.ndarray, parts: list[np.ndarray]) -> tuple[str, ...]:
        """Add which classes are rare and who the free rider is."""
        rare = ", ".join(map(str, classes_held(labels, parts[0])))
        note = f"client 0 alone holds classes {rare}; client {len(parts) - 1} is the free rider"
        return (*super().notes(labels, parts), f"{self}: {note}")

    def roles(self, labels: np.ndarray, parts: list[np.ndarray]) -> Roles:
        """Return that the classes of client 0 are rare and the last client rides free."""
        return Roles(classes_held(labels, parts[0]), free_riders=(len(parts) - 1,))
