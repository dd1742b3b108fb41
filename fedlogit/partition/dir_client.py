"""Dirichlet label skew, client form: the one behind CELM's tables (CELM §5, App. B.1)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fedlogit.errors import FedlogitError
from fedlogit.partition.base import Partition
from fedlogit.partition.tools import by_class, cut_classes, cut_points, legacy_generator

__all__ = ["DirClient", "dirichlet_parts"]

_ATTEMPTS = 1000


class DirClient(Partition):
    """Each client draws class proportions; each class is then cut in proportion to them.

    1. For clients i = 0..N-1 in order, draw ``p_i ~ Dir(alpha * 1_K)``.
    2. Normalise every class over the clients: ``P_ik = p_ik / sum_j p_jk``.
    3. Shuffle each class and cut it at ``floor(cumsum(P_.k) * n_k)``.

    Class counts depend on step 1 alone, which precedes the shuffles. NumPy's legacy generator with
    seed 42 then gives the distances that CELM's Table 4 prints, to the last digit.

    CELM §5 speaks of "class-wise" sampling, and NIID-Bench does draw per class over the clients
    (here `dir_class`); the client-wise form is the one in the public code of the CELM author
    (asimukaye/spectralfuse). There is no minimum size and none is needed: clients are never empty
    in practice. If all clients draw 0 for a class, which has no meaning there, all is drawn anew.

    Attributes:
        alpha: Concentration; 100 is CELM's IID row, 0.01 nearly one class per client.
    """

    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)]

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        return dirichlet_parts(labels, clients, classes, self.alpha, legacy_generator(seed))


def dirichlet_parts(
    labels: np.ndarray, clients: int, classes: int, alpha: float, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Divide the samples as `DirClient` does, with a generator that others go on to use."""
    shares = _shares(clients, classes, alpha, rng)
    pools = by_class(labels, classes)
    for pool in pools:
        rng.shuffle(pool)
    cuts = [cut_points(shares[:, k], len(pool)) for k, pool in enumerate(pools)]
    return cut_classes(pools, cuts)


def _shares(clients: int, classes: int, alpha: float, rng: np.random.RandomState) -> np.ndarray:
    """Return the share of each class that each client gets, (N, K) with columns summing to 1."""
    for _ in range(_ATTEMPTS):
        drawn = rng.dirichlet(np.full(classes, alpha), size=clients)
        # Class by class, as the author's code adds. From eight clients on NumPy sums one column in
        # another order than all of them at once, and the last bit decides on which side of a cut
        # a sample falls.
        totals = np.array([column.sum() for column in drawn.T])
        # A tiny alpha underflows to 0/0; NaN is not > 0 either.
        if np.all(totals > 0):
            return drawn / totals
    raise FedlogitError(
        f"alpha = {alpha}: {_ATTEMPTS} draws all gave some class to nobody, or no numbers; use one"
        " between 0.001 and 1,000"
    )
