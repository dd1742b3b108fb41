"""Dirichlet label skew among clients of equal size (Hsu et al. 2019)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fedlogit.errors import FedlogitError
from fedlogit.partition.base import Partition
from fedlogit.partition.tools import by_class, cut_classes
from fedlogit.rng import rng

__all__ = ["DirEqual"]


class DirEqual(Partition):
    """Each client draws class shares ``q ~ Dir(alpha * p)``, then equally many samples by them.

    The definition is that of Hsu et al. (2019, "Measuring the Effects of Non-Identical Data
    Distribution for Federated Visual Classification", arXiv 1909.06335): p is a prior over classes
    that sums to 1. The public code (google-research/federated, cifar10_dataset.py) and later
    benches write ``Dir(a * 1_K)`` instead; that is ``dir_equal(alpha=a * K, prior='uniform')``.

    Sizes are those of `iid`: all samples are dealt and clients differ by at most one, or everyone
    holds `size`. A class that has run out has no share any more, at any client; one whose classes
    have all run out takes of what is left, in proportion to it. So with all samples dealt, as in
    the paper's 100 clients with 500 images each, clients are less skewed than q, by much where they
    are few and `alpha` is small. A smaller `size` avoids it, and a note beside the results says it.

    The paper does not say who draws first. That code fills one client after another, so the last
    ones take the leftovers of all; here clients take turns in random order.

    Attributes:
        alpha: Concentration over all classes; smaller is more skewed.
        size: Samples of every client; None deals all.
        prior: What p is: "data", the shares of the classes among the samples, or "uniform", the
            same for each class that there is.
    """

    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    size: Annotated[int, Field(gt=0)] | None = None
    prior: Literal["data", "uniform"] = "data"

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        if self.size is not None:
            self.at_most("size", len(labels) // clients, "the samples per client")
        generator = rng(seed, "partition")
        pools = [pool for pool in by_class(labels, classes) if len(pool)]
        shares = self._shares([len(pool) for pool in pools], clients, generator)
        everyone = np.array_split(np.arange(len(labels)), clients)
        sizes = [len(part) if self.size is None else self.size for part in everyone]
        turns = generator.permutation(np.repeat(np.arange(clients), sizes))
        counts = _deal(shares, [len(pool) for pool in pools], turns, generator)
        # The last piece of each class is what nobody takes.
        return cut_classes(map(generator.permutation, pools), np.cumsum(counts, axis=0).T)[:clients]

    def notes(self, labels: np.ndarray, parts: list[np.ndarray]) -> tuple[str, ...]:
        """Add how skewed the clients are and how skewed `alpha` means, where classes ran out."""
        notes = super().notes(labels, parts)
        there = np.bincount(labels)
        held = np.stack([np.bincount(labels[part], minlength=len(there)) for part in parts])
        out = (there > 0) & (held.sum(axis=0) == there)
        if not out.any():
            return notes
        found = np.square(held / held.sum(axis=1, keepdims=True)).sum(axis=1).mean()
        p = self._prior(there[there > 0])
        meant = (1 + self.alpha * np.square(p).sum()) / (1 + self.alpha)
        return (
            *notes,
            f"{self}: {out.sum()} of {(there > 0).sum()} classes ran out; clients' squared shares"
            f" of classes add up to {found:.2f} on average, where alpha means {meant:.2f}",
        )

    def _prior(self, sizes: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return p for classes of these sizes, (K,)."""
        weights = np.array(sizes) if self.prior == "data" else np.ones(len(sizes))
        return weights / weights.sum()

    def _shares(
        self, sizes: Sequence[int], clients: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Draw the clients' shares of the classes that there are, (N, K) with rows summing to 1."""
        shares = generator.dirichlet(self.alpha * self._prior(sizes), size=clients)
        if not (shares.sum(axis=1) > 0).all():  # NumPy returns zeros for 0 and for huge numbers
            raise FedlogitError(
                f"partition {self.name}: alpha = {self.alpha}: too near the limits of a float to"
                " draw shares with; use a larger or smaller alpha"
            )
        return shares


def _deal(
    shares: np.ndarray, sizes: Sequence[int], turns: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Return how many samples of each class each client draws, (N, K) `int64`.

    Args:
        shares: Share of each class at each client, (N, K) with rows summing to 1.
        sizes: Samples of each class, K.
        turns: Clients in the order in which each draws one sample; at most as many as samples.
        generator: Source of the draws.
    """
    counts = np.zeros(shares.shape, np.int64)
    left = np.array(sizes)
    upto = _cumulative(shares, left)
    for client, luck in zip(turns.tolist(), generator.random(len(turns)).tolist(), strict=True):
        k = bisect_right(upto[client], luck)
        counts[client, k] += 1
        left[k] -= 1
        if left[k] == 0 and left.any():
            upto = _cumulative(shares, left)
    return counts


def _cumulative(shares: np.ndarray, left: np.ndarray) -> list[list[float]]:
    """Return each client's cumulative shares of the classes of which some samples are left."""
    weights = shares * (left > 0)
    weights[weights.sum(axis=1) == 0] = left
    sums = np.cumsum(weights, axis=1)
    # The last is exactly 1, which no draw from [0, 1) reaches; a class without share adds nothing.
    cumulative: list[list[float]] = (sums / sums[:, -1:]).tolist()
    return cumulative
