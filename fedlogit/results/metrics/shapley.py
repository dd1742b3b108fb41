"""How well estimated contributions rank clients, compared with their Shapley values."""

from __future__ import annotations

import math

import numpy as np
import scipy  # whose `stats`, a second of imports, comes when it is used

__all__ = ["ALIKE", "rank_correlation"]

ALIKE = 0.01
"""Contributions do not rank clients by less than this part of what each had if all had as much."""

_ROUNDING = 1e-9  # nor do contributions or values that differ by less


def rank_correlation(contributions: np.ndarray, values: np.ndarray) -> float:
    """Return Spearman's rank correlation; NaN if contributions, or values, are (nearly) all equal.

    Args:
        contributions: That a method estimates, (clients,).
        values: Shapley values, (clients,).
    """
    equal = float(np.abs(contributions).mean())
    alike = np.ptp(contributions) < max(ALIKE * equal, _ROUNDING)
    if alike or np.ptp(values) < _ROUNDING:
        return math.nan
    return float(scipy.stats.spearmanr(contributions, values).statistic)
