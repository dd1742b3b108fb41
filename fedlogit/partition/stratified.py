"""Stratified subsamples: the class proportions of the whole, as exactly as integers allow."""

from __future__ import annotations

import numpy as np

from fedlogit.errors import FedlogitError

__all__ = ["stratified"]


def stratified(
    labels: np.ndarray, size: int, generator: np.random.Generator, key: str = "size"
) -> np.ndarray:
    """Return `size` ascending positions into `labels`, with the class proportions of the whole.

    Every class gets the integer part of its share; what is left goes to the largest remainders,
    ties to the lowest class.

    Args:
        labels: Class of each sample, (n,).
        size: Samples to draw, 1 to n.
        generator: Source of the draw.
        key: The setting that `size` came from, for the message.

    Raises:
        FedlogitError: if `size` is out of range.
    """
    labels = np.asarray(labels)
    if not 0 < size <= len(labels):
        raise FedlogitError(f"{key} = {size}: there are {len(labels)} samples; give 1 to that")
    present, counts = np.unique(labels, return_counts=True)
    exact = counts * (size / len(labels))
    quota = np.floor(exact).astype(np.int64)
    order = np.argsort(quota - exact, kind="stable")
    quota[order[: size - quota.sum()]] += 1
    drawn = [
        generator.permutation(np.flatnonzero(labels == c))[:q]
        for c, q in zip(present, quota, strict=True)
    ]
    return np.sort(np.concatenate(drawn))
