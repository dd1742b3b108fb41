"""k classes per client, overlapping private sets of a fixed size (Who to Trust §4.1, A.2)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedlogit.partition.base import Partition
from fedlogit.partition.tools import balanced_sets, by_class
from fedlogit.rng import rng

__all__ = ["KClasses"]


class KClasses(Partition):
    """Each client draws k classes, then `private_size` / k samples of each of them.

    Samples are drawn without replacement within a client and independently across clients, so
    private sets overlap (A.2). A class with too few samples gives all that it has: with a disjoint
    public set of 5,000, CIFAR-10 clients at k = 2 hold 9,000 images and not 10,000; the notes
    say so. Should `private_size` not be a multiple of k, the first classes give one sample more.

    The paper does not say how class sets are drawn, and plain averaging at k = 2 depends on it:

    - ``random``: independently. A class left without an owner replaces, in a client drawn at
      random, a class with other owners, so all classes are covered whenever N * k >= K.
    - ``balanced``: all classes have equally many owners (to within one).

    Attributes:
        k: Classes per client.
        private_size: Samples per client.
        class_sets: How class sets are drawn.
    """

    disjoint: ClassVar[bool] = False

    k: Annotated[int, Field(gt=0)]
    private_size: Annotated[int, Field(gt=0)] = 10000
    class_sets: Literal["random", "balanced"] = "random"

    def check_classes(self, classes: int) -> None:
        """Refuse parameters that need more classes; see `Partition.check_classes`."""
        self.at_most("k", classes, "the number of classes")

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        self.at_most("k", self.private_size, "the private_size")
        generator = rng(seed, "partition")
        sets = self._class_sets(clients, classes, generator)
        pools = by_class(labels, classes)
        return [self._draw([pools[c] for c in chosen], generator) for chosen in sets]

    def notes(self, labels: np.ndarray, parts: list[np.ndarray]) -> tuple[str, ...]:
        """Add how many samples clients hold, where some hold fewer than `private_size`."""
        sizes = [len(part) for part in parts]
        notes = super().notes(labels, parts)
        if min(sizes) == self.private_size:
            return notes
        short = sum(size < self.private_size for size in sizes)
        return (
            *notes,
            f"{self}: {short} of {len(parts)} clients hold fewer than private_size ="
            f" {self.private_size} samples (the smallest {min(sizes)}), for their classes have"
            " no more",
        )

    def _class_sets(
        self, clients: int, classes: int, generator: np.random.Generator
    ) -> list[np.ndarray]:
        if self.class_sets == "balanced":
            return balanced_sets(clients, self.k, classes, generator)
        sets = [generator.choice(classes, self.k, replace=False) for _ in range(clients)]
        return _covering(np.stack(sets), classes, generator)

    def _draw(self, pools: list[np.ndarray], generator: np.random.Generator) -> np.ndarray:
        each, more = divmod(self.private_size, self.k)
        wanted = [each + (i < more) for i in range(self.k)]
        taken = [
            generator.choice(pool, min(size, len(pool)), replace=False)
            for pool, size in zip(pools, wanted, strict=True)
        ]
        return np.concatenate(taken)


def _covering(sets: np.ndarray, classes: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Give every class an owner if the (N, k) class sets have room for all of them."""
    owners = np.bincount(sets.ravel(), minlength=classes)
    for lost in np.flatnonzero(owners == 0):
        spare = np.argwhere(owners[sets] > 1)
        if len(spare) == 0:
            break
        client, place = generator.choice(spare)
        owners[sets[client, place]] -= 1
        sets[client, place] = lost
        owners[lost] = 1
    return [np.sort(chosen) for chosen in sets]
