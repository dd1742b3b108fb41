"""Step label skew with one order of classes for all seeds (CELM §5)."""

from __future__ import annotations

import numpy as np

from fedlogit.partition.sls import Sls

__all__ = ["SlsFixed"]


class SlsFixed(Sls):
    """`sls` whose order of classes is 0, 1, …, K-1 with every seed.

    CELM does not say whether the order is fixed or drawn per seed; its distances (Table 4) are the
    same for any order. The seed still decides which samples of a class each owner gets.

    Attributes:
        m0: Classes of the first client: 2, and 10 for EMNIST.
    """

    def order(self, classes: int, rng: np.random.RandomState) -> np.ndarray:
        """Return 0 to K-1; nothing is drawn."""
        return np.arange(classes)
