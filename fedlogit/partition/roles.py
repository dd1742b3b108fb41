"""Maverick and free-rider roles, which `maverick`, `fr` and `frm` put together (CELM §6.1-6.2).

CELM publishes Figure 3 and a description, but no numbers; sizes here are this project's choice.
Classes are put in an order: common ones, which a free rider has, first, rare ones last. With drawn
rare classes all three partitions of one seed agree on both.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fedlogit.errors import FedlogitError
from fedlogit.partition.base import Partition, Roles
from fedlogit.rng import rng

__all__ = [
    "RareClasses",
    "WithFreeRider",
    "class_order",
    "classes_held",
    "free_rider_samples",
    "iid_parts",
    "maverick_samples",
    "samples_of_classes",
]

# "last": the last classes are rare whatever the seed; "drawn": every seed draws its own.
RareClasses = Literal["last", "drawn"]


class WithFreeRider(Partition):
    """A partition whose last client is a free rider, and in which no class is rare."""

    def roles(self, labels: np.ndarray, parts: list[np.ndarray]) -> Roles:
        """Return that the last client rides free."""
        return Roles(free_riders=(len(parts) - 1,))


def class_order(
    classes: int, seed: int, rare: int = 0, chosen: RareClasses = "drawn"
) -> np.ndarray:
    """Return the classes (K,) in the seed's order, the `rare` ones at the end."""
    order = rng(seed, "partition", 0).permutation(classes)
    if chosen == "drawn":
        return order
    common = order[order < classes - rare]
    return np.concatenate([common, np.arange(classes - rare, classes)])


def samples_of_classes(labels: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the ascending indices of all samples of the chosen classes."""
    return np.flatnonzero(np.isin(labels, chosen))


def maverick_samples(labels: np.ndarray, rare: np.ndarray) -> np.ndarray:
    """Return the indices of all samples of the rare classes.

    Raises:
        FedlogitError: if one of them has no samples, so that nobody could hold it.
    """
    missing = sorted(set(rare.tolist()) - set(np.unique(labels).tolist()))
    if missing:
        raise FedlogitError(
            f"rare class {missing[0]} has no samples, so no client holds it;"
            " give fewer rare classes, or rare_classes = 'drawn' and another seed"
        )
    return samples_of_classes(labels, rare)


def classes_held(labels: np.ndarray, part: np.ndarray) -> tuple[int, ...]:
    """Return the classes that these samples have, ascending."""
    return tuple(np.unique(labels[part]).tolist())


def free_rider_samples(labels: np.ndarray, common: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Draw a free rider's samples: `size` in all, equally many of each common class."""
    generator = rng(seed, "partition", 1)
    each, more = divmod(size, len(common))
    drawn = []
    for i, label in enumerate(common):
        pool = np.flatnonzero(labels == label)
        drawn.append(generator.choice(pool, min(each + (i < more), len(pool)), replace=False))
    return np.concatenate(drawn)


def iid_parts(pool: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
    """Divide the pool IID among this many clients."""
    return np.array_split(rng(seed, "partition", 2).permutation(pool), clients)
