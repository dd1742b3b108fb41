"""Which methods may be the best of several, by comparisons seed by seed (subset selection)."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from fedlogit.results.statistics.means import ALPHA, p_above, paired_interval

__all__ = ["INTERVAL", "candidates"]

INTERVAL = 0.95
"""Level of the interval of a difference."""


def candidates(values: pd.DataFrame) -> pd.DataFrame:
    """Return which methods may be the best, by tests of each against all others, seed by seed.

    A method is excluded if some other is above it by a one-sided paired t test at 5 % divided by
    the number of others (Bonferroni). Whichever method is truly the best is then excluded with a
    probability of 5 % at most, so that the methods left contain it with 95 % confidence, although
    the same runs choose and test: a subset selection after Gupta (1965) and Hsu (1984), with a
    variance of its own for each pair. The method with the best mean is never excluded.

    Args:
        values: More is better, (seeds, methods), without NaN.

    Returns:
        A row a method, the best mean first: `method`, `mean`, `n` (seeds), and of the best mean
        minus the method's `difference`, `low` and `high` (95 %, of this pair alone, so without
        correction); `p` of the test against the method with the most evidence of being above
        it, times the number of others (NaN of a single seed, 1 without others); and `beaten_by`,
        that method if p is below 5 %, else "". `result` is ``best mean``, ``not excluded``,
        ``excluded`` or, of a single seed, ``no test``.
    """
    means = values.mean().sort_values(ascending=False, kind="stable")
    numbers = values[means.index].to_numpy(dtype=float)
    rows = []
    for place, method in enumerate(means.index):
        rival, p = _strongest_rival(numbers, place)
        gap = numbers[:, 0] - numbers[:, place]
        low, high = paired_interval(gap, INTERVAL) if place else (0.0, 0.0)
        rows.append(
            {
                "method": method, "mean": float(means.iloc[place]), "n": len(numbers),
                "difference": float(gap.mean()), "low": low, "high": high,
                "beaten_by": means.index[rival] if p < ALPHA else "", "p": p,
                "result": _result(place, len(numbers), p),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _strongest_rival(numbers: np.ndarray, place: int) -> tuple[int, float]:
    """Return who has the smallest p of being above a method, and that p, corrected.

    NaN for a single seed, which tests nothing, and 1 without others.
    """
    seeds, methods = numbers.shape
    if seeds == 1:
        return place, math.nan
    others = [other for other in range(methods) if other != place]
    if not others:
        return place, 1.0
    p_values = [p_above(numbers[:, other] - numbers[:, place]) for other in others]
    least = int(np.argmin(p_values))
    return others[least], min(1.0, len(others) * p_values[least])


def _result(place: int, seeds: int, p: float) -> str:
    if place == 0:
        return "best mean"
    if seeds == 1:
        return "no test"
    return "excluded" if p < ALPHA else "not excluded"
