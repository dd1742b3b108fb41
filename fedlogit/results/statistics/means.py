"""Intervals and tests of means over runs, on which the rules for verdicts and claims rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose `stats`, a second of imports, comes when it is used

__all__ = [
    "ALPHA",
    "INSIDE",
    "OUTSIDE",
    "ROUNDING",
    "Sample",
    "half_width",
    "holm",
    "interval",
    "p_above",
    "p_below",
    "paired_interval",
    "welch",
]

INSIDE = 0.90  # two one-sided tests at 5 %: the usual test of equivalence
OUTSIDE = 0.95
ALPHA = 0.05
ROUNDING = 1e-12  # 0.9554 - 0.9454 is a little more than 0.01


@dataclass(frozen=True)
class Sample:
    """A mean over runs.

    Attributes:
        mean: The mean.
        std: Standard deviation over the runs (ddof=1); NaN if not known.
        n: The number of runs; NaN if not known.
    """

    mean: float
    std: float = math.nan
    n: float = math.nan


def half_width(ours: Sample, theirs: Sample, level: float) -> float:
    """Return half the width of the widest confidence interval that a difference of means may have.

    Welch's interval has the fewer degrees of freedom, the more one variance outweighs the other, so
    it can shrink while one of them grows. Noise must not help: the interval is taken to be no
    narrower than that of either mean alone.

    Args:
        ours: With n ≥ 2.
        theirs: An unknown `std` is ours, and an unknown `n` the smallest possible: 2 with a `std`,
            1 without.
        level: The confidence, as 0.90.
    """
    exact = Sample(0.0, 0.0, 2)
    if math.isnan(theirs.std):
        n = 1 if math.isnan(theirs.n) else theirs.n
        return welch(ours, exact, level) * math.sqrt(1 + ours.n / n)
    theirs = replace(theirs, n=theirs.n if theirs.n >= 2 else 2)  # also for NaN
    pairs = ((ours, theirs), (ours, exact), (exact, theirs))
    return max(welch(*pair, level) for pair in pairs)


def welch(one: Sample, other: Sample, level: float) -> float:
    """Return half the width of Welch's confidence interval of a difference of means.

    The degrees of freedom are those of Welch and Satterthwaite,
    (a + b)² / (a² / (n - 1) + b² / (m - 1)) for variances a and b of the means of n and m runs.
    """
    variances = [sample.std**2 / sample.n for sample in (one, other)]
    total = sum(variances)
    if not total:
        return 0.0
    first, second = (variance / total for variance in variances)
    freedom = 1 / (first**2 / (one.n - 1) + second**2 / (other.n - 1))
    return float(scipy.stats.t.ppf((1 + level) / 2, freedom)) * math.sqrt(total)


def interval(ours: Sample, theirs: Sample, *, exact: bool = False) -> tuple[float, float]:
    """Return the 90 % interval of ours minus the paper's; NaN without one, as for a single run."""
    if ours.n < 2 or (exact and ours.std == 0):
        return math.nan, math.nan
    half, difference = half_width(ours, theirs, INSIDE), ours.mean - theirs.mean
    return difference - half, difference + half


def paired_interval(differences: np.ndarray, level: float) -> tuple[float, float]:
    """Return the confidence interval of the mean of paired differences, (n,); NaN for n < 2."""
    n = len(differences)
    if n < 2:
        return math.nan, math.nan
    mean, error = float(np.mean(differences)), float(np.std(differences, ddof=1)) / math.sqrt(n)
    half = float(scipy.stats.t.ppf((1 + level) / 2, n - 1)) * error
    return mean - half, mean + half


def p_above(differences: np.ndarray, margin: float = 0.0) -> float:
    """Return the p value of a one-sided t test that the mean is above a margin.

    Args:
        differences: One per seed, (n,); NaN where a run diverged.
        margin: What they should exceed.

    Returns:
        1 for n < 2, and if a run diverged: there is no evidence for anything.
    """
    n = len(differences)
    if n < 2 or not np.isfinite(differences).all():
        return 1.0
    above = float(np.mean(differences)) - margin
    error = float(np.std(differences, ddof=1)) / math.sqrt(n)
    if error < ROUNDING:  # all runs agree
        return 0.0 if above > ROUNDING else 1.0
    return float(scipy.stats.t.sf(above / error, n - 1))


def p_below(differences: np.ndarray, margin: float = 0.0) -> float:
    """Return the p value of a one-sided t test that the mean is below a margin; see `p_above`."""
    return p_above(-differences, -margin)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number after Holm (1979).

    The smallest of m is multiplied by m, the next by m - 1, and so on; none becomes smaller than
    the one before it, or larger than 1.
    """
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, (len(p_values) - rank) * p_values[index])
        corrected[index] = min(1.0, largest)
    return corrected
