"""The public set: the images that clients exchange logits on (Who to Trust §3.1)."""

from __future__ import annotations

import numpy as np

from fedlogit.errors import FedlogitError
from fedlogit.partition.tools import by_class
from fedlogit.spec import Public

__all__ = ["foreign_set", "public_set"]


def public_set(
    labels: np.ndarray, classes: int, public: Public, generator: np.random.Generator
) -> np.ndarray:
    """Draw the public set out of a pool of samples.

    Args:
        labels: Class of each sample of the pool, (n,).
        classes: Number of classes K.
        public: Its size, and the classes that it may hold.
        generator: Source of the draw.

    Returns:
        Ascending positions in `labels`. A stratified set has ``size // K`` samples of each class,
        one more of the first classes for the remainder; what a class lacks comes from the others.

    Raises:
        FedlogitError: if the pool or its classes are too small, or a class does not exist.
    """
    wanted = np.arange(classes) if public.classes is None else np.unique(public.classes)
    if len(wanted) == 0 or wanted[0] < 0 or wanted[-1] >= classes:
        raise FedlogitError(
            f"public.classes = {list(public.classes or ())}: give classes from 0 to {classes - 1}"
        )
    candidates = np.flatnonzero(np.isin(labels, wanted))
    if public.size >= len(labels):
        raise FedlogitError(
            f"public.size = {public.size}: give less than the {len(labels)} samples"
        )
    if public.last:
        return np.arange(len(labels) - public.size, len(labels))
    if public.size > len(candidates):
        raise FedlogitError(
            f"public.size = {public.size}: public.classes have only {len(candidates)} samples"
        )
    if not public.stratified:
        return np.sort(generator.choice(candidates, public.size, replace=False))
    pools = by_class(labels[candidates], classes)
    quota = _equal(public.size, np.array([len(pool) for pool in pools]))
    drawn = [generator.choice(pool, n, replace=False) for pool, n in zip(pools, quota, strict=True)]
    return np.sort(candidates[np.concatenate(drawn)])


def foreign_set(
    own: int, pool: np.ndarray, foreign: int, public: Public, generator: np.random.Generator
) -> np.ndarray:
    """Draw the public set out of another data set, and take its anchors off the end of the pool.

    Args:
        own: Samples of the whole own training split; those of the other data set come after them.
        pool: Ascending indices of the samples to be divided, (n,).
        foreign: Samples of the other data set.
        public: Its size, and how many anchors.
        generator: Source of the draw.

    Returns:
        Ascending indices: anchors below `own`, the others from it.

    Raises:
        FedlogitError: if there are too few samples of either kind.
    """
    if public.size > foreign:
        raise FedlogitError(
            f"public.size = {public.size}: {public.dataset} has only {foreign} samples"
        )
    if public.anchors >= len(pool):
        raise FedlogitError(
            f"public.anchors = {public.anchors}: give less than the {len(pool)} samples"
        )
    anchors = pool[len(pool) - public.anchors :]
    drawn = own + np.sort(generator.choice(foreign, public.size, replace=False))
    return np.concatenate([anchors, drawn])


def _equal(size: int, stock: np.ndarray) -> np.ndarray:
    """Return how many to take of each class: equally many, as far as `stock` (K,) goes.

    The remainder goes to the first classes; what a class lacks is asked of the others.
    """
    quota = np.zeros_like(stock)
    while size:
        room = np.flatnonzero(quota < stock)
        each, more = divmod(size, len(room))
        asked = each + (np.arange(len(room)) < more)
        given = np.minimum(asked, (stock - quota)[room])
        quota[room] += given
        size -= int(given.sum())
    return quota
