"""Power of the one-sided paired t test, and how many seeds it needs.

With n seeds and a true effect d (mean difference over its standard deviation between seeds), the
statistic has a noncentral t distribution with n - 1 degrees of freedom and noncentrality d √n
(Cohen 1988, ch. 2).
"""

from __future__ import annotations

import math
from bisect import bisect_left

import scipy  # whose `stats`, a second of imports, comes when it is used

from fedlogit.results.statistics.means import ALPHA

__all__ = ["MOST_SEEDS", "power", "seeds_needed"]

MOST_SEEDS = 1000
_WANTED = 0.8  # power that is usual to ask for (Cohen 1988, ch. 2)


def power(effect: float, seeds: int) -> float:
    """Return the probability that the one-sided paired t test at level `ALPHA` detects an effect.

    Args:
        effect: The true mean difference over its standard deviation between seeds; infinite
            without any spread.
        seeds: n ≥ 2.
    """
    if math.isinf(effect):
        return float(effect > 0)
    critical = scipy.stats.t.isf(ALPHA, seeds - 1)
    return float(scipy.stats.nct.sf(critical, seeds - 1, effect * math.sqrt(seeds)))


def seeds_needed(effect: float) -> float:
    """Return the smallest n with a power of 0.8 at least; NaN if it is above `MOST_SEEDS`."""
    if not effect > 0 or power(effect, MOST_SEEDS) < _WANTED:
        return math.nan
    # Power grows with n, and the place of n in the range is n.
    return bisect_left(range(MOST_SEEDS + 1), _WANTED, lo=2, key=lambda n: power(effect, n))
