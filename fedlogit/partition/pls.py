"""Pure label skew: different numbers of classes, equally many samples (CELM §5)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.errors import FedlogitError
from fedlogit.partition.base import Partition
from fedlogit.partition.tools import by_class, class_counts, legacy_generator

__all__ = ["Pls"]


class Pls(Partition):
    """Client i holds up to ``m0 + i * floor((K - m0) / (N - 1))`` classes; all are equally large.

    1. Client i draws that many labels, and takes of each, in the order drawn,
       ``s_min + (N - i) * floor((s_max - s_min) / N)`` samples that nobody has yet (or what is
       left; a label with fewer than `s_min` left is skipped). It stops as soon as it holds more
       than ``m0 * s_max`` samples.
    2. Every client is subsampled at random to the size of the smallest one.

    This is the label skew of the CELM author's public code (asimukaye/spectralfuse, "only label
    skew", version 2). CELM §5 describes only the aim. Because of the early stop the class counts
    on ten classes and five clients are (2, 3, 4, 5, 9), with some seeds 10 in place of 9, and not
    (2, 4, 6, 8, 10), and half of Fashion-MNIST stays unused; CELM's Table 4 agrees with the former
    and excludes the latter.
    The generator is NumPy's legacy one, used in that code's order, so counts agree with it.

    The code's parameters: (2, 3000, 100) for MNIST and Fashion-MNIST, (2, 2000, 100) for CIFAR-10,
    (10, 2000, 100) for EMNIST, (20, 400, 100) for CIFAR-100.

    Attributes:
        m0: Classes of the first client.
        s_max: Samples per class that the first client may take.
        s_min: Samples that a class must have left to be taken from.
    """

    m0: Annotated[int, Field(gt=0)]
    s_max: Annotated[int, Field(gt=0)]
    s_min: Annotated[int, Field(gt=0)] = 100

    def check_classes(self, classes: int) -> None:
        """Refuse parameters that need more classes; see `Partition.check_classes`."""
        self.at_most("m0", classes, "the number of classes")

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        self.at_most("s_min", self.s_max, "the s_max")
        rng = legacy_generator(seed)
        unused = by_class(labels, classes)
        step = (self.s_max - self.s_min) // clients
        parts = [
            self._take(rng.choice(classes, size, replace=False), quota, unused, rng)
            for size, quota in zip(
                class_counts(self.m0, classes, clients),
                (self.s_min + (clients - i) * step for i in range(clients)),
                strict=True,
            )
        ]
        return self._equal(parts, rng)

    def notes(self, labels: np.ndarray, parts: list[np.ndarray]) -> tuple[str, ...]:
        """Add how many samples nobody holds: equal sizes cost the rest."""
        used = sum(len(part) for part in parts)
        notes = super().notes(labels, parts)
        return (*notes, f"{self}: uses {used} of {len(labels)} samples, {len(parts[0])} per client")

    def _take(
        self, drawn: np.ndarray, quota: int, unused: list[np.ndarray], rng: np.random.RandomState
    ) -> np.ndarray:
        """Take a client's samples out of `unused`, which shrinks."""
        held: list[np.ndarray] = [np.empty(0, np.int64)]
        for label in drawn:
            left = unused[label]
            if len(left) < self.s_min:
                continue
            taken = rng.choice(left, min(quota, len(left)), replace=False)
            unused[label] = np.setdiff1d(left, taken, assume_unique=True)
            held.append(taken)
            if sum(map(len, held)) > self.m0 * self.s_max:
                break
        samples = np.concatenate(held)
        rng.shuffle(samples)
        return samples

    def _equal(self, parts: list[np.ndarray], rng: np.random.RandomState) -> list[np.ndarray]:
        sizes = [len(part) for part in parts]
        smallest = min(sizes)
        if smallest == 0:
            raise FedlogitError(
                f"partition {self} leaves client {sizes.index(0)} without samples: its classes had"
                " fewer than s_min left; use a smaller s_max or s_min, or fewer clients"
            )
        return [rng.choice(part, smallest, replace=False) for part in parts]
