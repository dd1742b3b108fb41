"""A fixed number of classes per client, "#I_c" (FedOL §V-A)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.partition.base import Partition
from fedlogit.partition.tools import balanced_sets, by_class, owners_of, share_classes
from fedlogit.rng import rng

__all__ = ["Pathological"]


class Pathological(Partition):
    """Each client owns `classes_per_client` classes; owners share a class equally.

    The rule is that of NIID-Bench, which FedOL cites (Xtra-Computing/NIID-Bench): client i owns
    class ``i mod K`` and `classes_per_client` - 1 others drawn at random. A class that nobody
    draws is lost to the federation: with 100 classes and 10 clients, 10.7 classes on average at 20
    per client and 2.8 at 30, which caps the accuracy that can be reached. The notes name them.

    Attributes:
        classes_per_client: I_c, the classes per client.
        balanced: Instead give all classes equally many owners (to within one), so none is lost if
            there is room for all.
    """

    classes_per_client: Annotated[int, Field(gt=0)]
    balanced: bool = False

    def check_classes(self, classes: int) -> None:
        """Refuse parameters that need more classes; see `Partition.check_classes`."""
        self.at_most("classes_per_client", classes, "the number of classes")

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        generator = rng(seed, "partition")
        if self.balanced:
            sets = balanced_sets(clients, self.classes_per_client, classes, generator)
        else:
            sets = [self._with(i % classes, classes, generator) for i in range(clients)]
        owners = owners_of(sets, classes)
        return share_classes(by_class(labels, classes), owners, clients, generator)

    def _with(self, first: int, classes: int, generator: np.random.Generator) -> np.ndarray:
        others = np.delete(np.arange(classes), first)
        drawn = generator.choice(others, self.classes_per_client - 1, replace=False)
        return np.append(drawn, first)
