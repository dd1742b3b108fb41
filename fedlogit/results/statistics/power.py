"""Power of the one-sided paired t test, and how many seeds it needs.

With n seeds and a true effect d (mean difference over its standard deviation between seeds), the
statistic has a noncentral t distribution with n - 1 degrees of freedom and noncentrality d √n
(Cohen 1988, ch. 2).
"""

from __future__ import annotations

import math

import scipy  # whose `stats`, a second of imports, comes when it is used

from fedlogit.results.statistics.means import ALPHA

__all__ = ["MOST_SEEDS", "power", "seeds_needed"]

MOST_SEEDS = 1000


def power(effect: float, seeds: int, alpha: float = ALPHA) -> float:
    """Return the probability that the one-sided paired t test detects an effect.

    Args:
        effect: The true mean difference over its standard deviation between seeds; infinite
            without any spread.
        seeds: n ≥ 2.
        alpha: The level of the test.
    """
    if math.isinf(effect):
        return float(effect > 0)
    critical = scipy.stats.t.isf(alpha, seeds - 1)
    return float(scipy.stats.nct.sf(critical, seeds - 1, effect * math.sqrt(seeds)))


def seeds_needed(effect: float, wanted: float = 0.8) -> float:
    """Return the smallest n with at least this power; NaN if it is above `MOST_SEEDS`."""
    if not effect > 0 or power(effect, MOST_SEEDS) < wanted:
        return math.nan
    low, high = 2, MOST_SEEDS
    while low < high:  # power grows with n
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, middle) >= wanted else (middle + 1, high)
    return low
