"""What several partitions share: generators, class indices, cuts, and sets of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from fedlogit.errors import FedlogitError

__all__ = [
    "balanced_sets",
    "by_class",
    "class_counts",
    "cut_classes",
    "cut_points",
    "draw_until",
    "legacy_generator",
    "owners_of",
    "share_classes",
]

T = TypeVar("T")

_ATTEMPTS = 10_000

# Both NumPy generators have `shuffle`, `permutation` and `choice`.
AnyGenerator = np.random.RandomState | np.random.Generator


def legacy_generator(seed: int) -> np.random.RandomState:
    """Return NumPy's legacy generator, which code by CELM's author draws with.

    It is the generator that ``np.random.seed(seed)`` sets, without touching the global state.

    Raises:
        FedlogitError: if the seed is outside the range that this generator takes.
    """
    if not 0 <= seed < 2**32:
        raise FedlogitError(f"seed = {seed}: this partition needs a seed from 0 to 2**32 - 1")
    return np.random.RandomState(seed)


def by_class(labels: np.ndarray, classes: int) -> list[np.ndarray]:
    """Return the ascending indices of each class; class k may have none."""
    order = np.argsort(labels, kind="stable")
    stops = np.cumsum(np.bincount(labels, minlength=classes))
    return np.split(order, stops[:-1])


def cut_points(shares: np.ndarray, size: int) -> np.ndarray:
    """Return where to cut `size` samples into pieces of these shares (N,), which sum to 1.

    The N - 1 cuts lie at ``floor(cumsum(shares) * size)``; the last piece takes the rest.
    """
    return (np.cumsum(shares) * size).astype(np.int64)[:-1]


def cut_classes(pools: Iterable[np.ndarray], cuts: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Cut each class into pieces; return the first pieces of all classes joined, the second, …."""
    pieces = [np.split(pool, where) for pool, where in zip(pools, cuts, strict=True)]
    return [np.concatenate(own) for own in zip(*pieces, strict=True)]


def draw_until(
    draw: Callable[[], tuple[T, np.ndarray]], min_size: int, what: str, concentration: str
) -> T:
    """Draw a partition anew until its smallest client has `min_size` samples.

    Args:
        draw: Draws a partition; returns it, and how many samples each client then holds, (N,).
        min_size: Samples that every client must have.
        what: Names the partition in the error.
        concentration: The parameter that a user could make larger.

    Raises:
        FedlogitError: if that many draws were all refused.
    """
    for _ in range(_ATTEMPTS):
        partition, held = draw()
        if held.min() >= min_size:
            return partition
    raise FedlogitError(
        f"{what}: none of {_ATTEMPTS} draws gave each of {len(held)} clients min_size = {min_size}"
        f" samples; use a larger {concentration}, a smaller min_size or fewer clients"
    )


def class_counts(first: int, classes: int, clients: int) -> list[int]:
    """Return the class counts ``m0 + i * floor((K - m0) / (N - 1))`` of CELM's PLS and SLS."""
    step = (classes - first) // max(clients - 1, 1)
    return [first + i * step for i in range(clients)]


def owners_of(sets: Sequence[np.ndarray], classes: int) -> list[list[int]]:
    """Return the clients that own each class, given the set of classes of each client."""
    return [[i for i, chosen in enumerate(sets) if k in chosen] for k in range(classes)]


def share_classes(
    pools: Sequence[np.ndarray], owners: Sequence[Sequence[int]], clients: int, rng: AnyGenerator
) -> list[np.ndarray]:
    """Shuffle each class and split it equally among its owners.

    Args:
        pools: Indices of each class, K arrays.
        owners: Clients that own each class, K ascending sequences; a class without owners is lost.
        clients: Number of clients N.
        rng: Shuffles the classes, in order.

    Returns:
        The indices of each client, N arrays.
    """
    parts: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in range(clients)]
    for pool, holders in zip(pools, owners, strict=True):
        if not len(holders):
            continue
        pieces = np.array_split(rng.permutation(pool), len(holders))
        for client, piece in zip(holders, pieces, strict=True):
            parts[client].append(piece)
    return [np.concatenate(pieces) for pieces in parts]


def balanced_sets(
    clients: int, size: int, classes: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw `size` distinct classes for each client so that all classes have equally many owners.

    Each client in turn takes the classes with the fewest owners so far, ties broken at random;
    the numbers of owners of any two classes then never differ by more than one.
    """
    owners = np.zeros(classes, np.int64)
    sets = []
    for _ in range(clients):
        chosen = np.lexsort((rng.permutation(classes), owners))[:size]
        owners[chosen] += 1
        sets.append(np.sort(chosen))
    return sets
