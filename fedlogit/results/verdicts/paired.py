"""Comparisons of methods seed by seed: paired t tests, and intervals of the differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd

from fedlogit.results.verdicts.rules import ALPHA, holm, p_above, p_below, paired_interval

__all__ = ["against_best", "paired_p"]

_LEVEL = 0.95  # of intervals


def paired_p(differences: np.ndarray) -> float:
    """Return the two-sided p value of a paired t test; 1 for a single seed, which shows nothing.

    Differences that agree at all seeds have no spread: p is 0, or 1 if they are 0.
    """
    return min(1.0, 2 * min(p_above(differences), p_below(differences)))


def against_best(values: pd.DataFrame) -> pd.DataFrame:
    """Compare the method with the best mean with all others, seed by seed.

    The best one is chosen by the same numbers that it is then tested with, so p values are
    corrected, after Holm, for all pairs of methods and not only for those with the best.

    Args:
        values: More is better, (seeds, methods), without NaN.

    Returns:
        A row a method, the best first: `method`, `mean`, `n` (seeds), and of best minus method
        `difference`, `low` and `high` (95 %, of this pair alone), `p` and `p_holm`; `result` is
        ``best``, ``worse``, ``not different`` or, of a single seed, ``no test``.
    """
    means = values.mean().sort_values(ascending=False, kind="stable")
    numbers = values[means.index].to_numpy(dtype=float)
    n, methods = numbers.shape
    pairs = list(itertools.combinations(range(methods), 2))  # those with the best come first
    raw = [paired_p(numbers[:, i] - numbers[:, j]) for i, j in pairs]
    corrected = holm(raw)
    rows = [_row(means.index[0], numbers[:, 0], 1.0, 1.0, "best")]
    for j in range(1, methods):
        p, p_holm = raw[j - 1], corrected[j - 1]
        tested = "worse" if p_holm < ALPHA else "not different"
        result = tested if n > 1 else "no test"
        gap = numbers[:, 0] - numbers[:, j]
        rows.append(_row(means.index[j], numbers[:, j], p, p_holm, result, gap))
    return pd.DataFrame(rows)


def _row(
    method: object,
    own: np.ndarray,
    p: float,
    p_holm: float,
    result: str,
    gap: np.ndarray | None = None,
) -> dict[str, object]:
    difference, (low, high) = 0.0, (0.0, 0.0)
    if gap is not None:
        difference, (low, high) = float(gap.mean()), paired_interval(gap, _LEVEL)
    if result == "no test":
        p = p_holm = math.nan
    return {
        "method": method, "mean": float(own.mean()), "n": len(own), "difference": difference,
        "low": low, "high": high, "p": p, "p_holm": p_holm, "result": result,
    }  # fmt: skip
