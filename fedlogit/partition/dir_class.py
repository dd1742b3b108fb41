"""Dirichlet label skew, class form: the standard one (FedOL §V-A, TallyTrain §4)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.partition.base import Partition
from fedlogit.partition.tools import by_class, cut_classes, cut_points, draw_until
from fedlogit.rng import rng

__all__ = ["DirClass"]


class DirClass(Partition):
    """Each class draws client proportions ``q ~ Dir(alpha * 1_N)`` and is cut by them.

    With `balance`, clients that already hold n / N samples get nothing of the class (their
    proportion becomes 0, the others are normalised). If the smallest client ends with fewer than
    `min_size` samples, everything is drawn anew.

    FedOL cites NIID-Bench, whose code (Xtra-Computing/NIID-Bench, also QinbinLi/FedKT) balances and
    asks for 10 samples: ``dir_class(0.05, balance=True)``. TallyTrain names only alpha = 0.5 and is
    read as unbalanced; FedDF's code (epfml/federated-learning-public-code) balances and asks for
    half of n / N samples instead of 10. Those codes shuffle each class between the draws of the
    proportions; here counts are drawn first, so a redraw costs no shuffling.

    Attributes:
        alpha: Concentration; smaller is more skewed.
        balance: Leave out clients that already hold their equal share.
        min_size: Samples that every client must have.
    """

    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    balance: bool = False
    min_size: Annotated[int, Field(gt=0)] = 10

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        self.at_most("min_size", len(labels) // clients, "the samples per client")
        generator = rng(seed, "partition")
        pools = by_class(labels, classes)
        sizes = [len(pool) for pool in pools]
        cuts = draw_until(
            lambda: self._draw(sizes, clients, generator),
            self.min_size, f"partition {self}", "alpha",
        )  # fmt: skip
        return cut_classes(map(generator.permutation, pools), cuts)

    def _draw(
        self, sizes: list[int], clients: int, generator: np.random.Generator
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Draw a partition: the cuts of each class, and how many samples each client then holds."""
        held = np.zeros(clients, np.int64)
        cuts = []
        for size in sizes:
            shares = generator.dirichlet(np.full(clients, self.alpha))
            if self.balance:
                shares = shares * (held < sum(sizes) / clients)
            if not shares.sum() > 0:  # nobody can take it: a draw that min_size refuses
                return [], np.zeros(clients, np.int64)
            where = cut_points(shares / shares.sum(), size)
            held += np.diff(where, prepend=0, append=size)
            cuts.append(where)
        return cuts, held
