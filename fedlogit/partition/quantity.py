"""Quantity skew: clients differ in how much they hold, not in what (NIID-Bench §4.4)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedlogit.partition.base import Partition
from fedlogit.partition.tools import cut_points, draw_until
from fedlogit.rng import rng

__all__ = ["Quantity"]


class Quantity(Partition):
    """Draw the clients' shares ``q ~ Dir(beta * 1_N)`` and cut the permuted samples by them.

    This is the quantity skew of NIID-Bench (Li et al. 2022, "Federated Learning on Non-IID Data
    Silos", arXiv 2102.02079; in its code, Xtra-Computing/NIID-Bench, ``iid-diff-quantity``). Every
    sample is dealt: client i holds those from ``floor(n * (q_0 + ... + q_i-1))`` up to where client
    i + 1 begins. If the smallest client has fewer than `min_size`, the shares are drawn anew, as in
    that code, whose limit is 10. Labels are not looked at, so a text can be divided, too.

    Attributes:
        beta: Concentration; smaller is more skewed.
        min_size: Samples that every client must have.
    """

    by_class: ClassVar[bool] = False

    beta: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    min_size: Annotated[int, Field(gt=0)] = 10

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        self.at_most("min_size", len(labels) // clients, "the samples per client")
        generator = rng(seed, "partition")

        def draw() -> tuple[np.ndarray, np.ndarray]:
            cuts = cut_points(generator.dirichlet(np.full(clients, self.beta)), len(labels))
            return cuts, np.diff(cuts, prepend=0, append=len(labels))

        cuts = draw_until(draw, self.min_size, f"partition {self}", "beta")
        return np.split(generator.permutation(len(labels)), cuts)
