"""The rules by which a number counts as reproduced, and a claim as holding.

In both, the noisier runs are, the less follows from them. The details, in words for readers, are in
the template of docs/claims.md, ``fedlogit/results/pages/templates/claims.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from fedlogit.papers.metric_names import is_counted, is_share
from fedlogit.results.statistics.means import (
    ALPHA,
    INSIDE,
    OUTSIDE,
    ROUNDING,
    Sample,
    half_width,
    holm,
    p_above,
    p_below,
    paired_interval,
    welch,
)

__all__ = [
    "CLAIM_RESULTS",
    "CLAIM_RULE",
    "DECIDED",
    "IN_FULL",
    "PARTLY",
    "REPRODUCED",
    "UNJUDGED",
    "UNTESTED",
    "VERDICTS",
    "VERDICT_RULE",
    "ClaimResult",
    "Unjudged",
    "Verdict",
    "decide",
    "final_result",
    "is_exact",
    "largest_difference",
    "margin_unit",
    "verdict",
]

REPRODUCED = 0.01
PARTLY = 0.03


class Verdict(StrEnum):
    """What a published number may be found to be, the best first."""

    REPRODUCED = "reproduced"
    PARTLY_REPRODUCED = "partly reproduced"
    INCONCLUSIVE = "inconclusive"
    NOT_REPRODUCED = "not reproduced"
    SINGLE_RUN_WITHIN = "single run, within"
    SINGLE_RUN_OUTSIDE = "single run, outside"


class Unjudged(StrEnum):
    """Why a published number has no verdict."""

    REDUCED_SCALE = "reduced scale"
    OTHER_SCALE = "other scale"
    STAND_IN_DATA = "stand-in data"
    DIVERGED = "diverged"
    NOT_RUN = "not run"


class ClaimResult(StrEnum):
    """What a claim may be found to do, the best first."""

    HOLDS = "holds"
    HOLDS_ON_AVERAGE = "holds on average"
    WITHIN_1_POINT = "no difference larger than 1 point"
    WITHIN_3_POINTS = "no difference larger than 3 points"
    UNDECIDED = "undecided"
    FAILS_ON_AVERAGE = "does not hold on average"
    FAILS = "does not hold"
    NOT_RUN = "not run"
    NOT_PLANNED = "not planned"


VERDICTS = tuple(Verdict)
UNJUDGED = tuple(Unjudged)
CLAIM_RESULTS = tuple(ClaimResult)
UNTESTED = frozenset({ClaimResult.NOT_RUN, ClaimResult.NOT_PLANNED})
DECIDED = frozenset(CLAIM_RESULTS) - UNTESTED - {ClaimResult.UNDECIDED}
_ON_AVERAGE = {
    ClaimResult.HOLDS: ClaimResult.HOLDS_ON_AVERAGE,
    ClaimResult.FAILS: ClaimResult.FAILS_ON_AVERAGE,
}
_WITHIN = {REPRODUCED: ClaimResult.WITHIN_1_POINT, PARTLY: ClaimResult.WITHIN_3_POINTS}
IN_FULL = " The rule in full is in docs/claims.md."
VERDICT_RULE = (
    "A number is *reproduced* if the 90 % confidence interval of our mean minus the paper's lies"
    " within ±1 point, *partly reproduced* if it lies within ±3 points, *not reproduced* if the"
    " 95 % interval lies wholly outside ±3 points, and *inconclusive* otherwise. A single run is"
    " *within* 3 points or *outside*, and counts as neither. Only runs at the scale `paper`, on the"
    " paper's data (bytes also on other data), are judged." + IN_FULL
)
CLAIM_RULE = (
    "A claim *holds* if in every planned cell the difference between runs of the same seed is"
    " above the margin by a one-sided paired t test at 5 %, and *does not hold* if in some cell it"
    " is below by the same test, corrected for the number of cells after Holm. If the cells"
    " do not decide, the test of their mean does: it holds, or does not hold, *on average*, which"
    " does not say so of every cell. If that does not decide either, there is *no difference larger"
    " than* 1 or 3 points where the 90 % interval of every cell's difference lies within them; else"
    " it is *undecided*, with the reason." + IN_FULL
)


def is_exact(metric: str) -> bool:
    """Return whether no training enters a metric: bytes are counted, a split is drawn."""
    return is_counted(metric) or metric.endswith("_uniform")


def margin_unit(metric: str, published: float) -> float:
    """Return what the margins of a difference are fractions of.

    Returns:
        1 for a share such as accuracy, and the published value itself for any other quantity.
    """
    return 1.0 if is_share(metric) else abs(published)


def verdict(ours: Sample, theirs: Sample, unit: float = 1.0, *, exact: bool = False) -> Verdict:
    """Return whether a mean reproduces a published one.

    Args:
        ours: With n ≥ 1.
        theirs: What the paper says.
        unit: What the margins are fractions of; see `margin_unit`.
        exact: Whether the quantity has no sampling error; see `is_exact`.
    """
    size = abs(ours.mean - theirs.mean)
    within, partly = REPRODUCED * unit + ROUNDING, PARTLY * unit + ROUNDING
    if exact and not ours.std > 0:  # NaN for a single run
        if size > partly:
            return Verdict.NOT_REPRODUCED
        return Verdict.REPRODUCED if size <= within else Verdict.PARTLY_REPRODUCED
    if ours.n < 2:
        return Verdict.SINGLE_RUN_WITHIN if size <= partly else Verdict.SINGLE_RUN_OUTSIDE
    reach = size + half_width(ours, theirs, INSIDE)
    if reach <= partly:
        return Verdict.REPRODUCED if reach <= within else Verdict.PARTLY_REPRODUCED
    known = not math.isnan(theirs.std) and theirs.n >= 2
    without_error = Sample(theirs.mean, 0.0, 2)
    width = half_width(ours, theirs, OUTSIDE) if known else welch(ours, without_error, OUTSIDE)
    outside = size - width > partly
    return Verdict.NOT_REPRODUCED if outside else Verdict.INCONCLUSIVE


def largest_difference(differences: Sequence[np.ndarray]) -> float:
    """Return the smallest margin, of 1 and 3 points, that no difference exceeds.

    Args:
        differences: Of each cell, one per seed, of a share.

    Returns:
        0.01 or 0.03 if the 90 % interval of every cell lies within it; else infinity.
    """
    ends = [abs(end) for cell in differences for end in paired_interval(cell, INSIDE)]
    for margin in (REPRODUCED, PARTLY):
        if ends and all(end <= margin + ROUNDING for end in ends):  # no NaN is
            return margin
    return math.inf


def decide(tests: Sequence[tuple[np.ndarray, float]]) -> ClaimResult:
    """Return whether differences are above a margin in all of several tests.

    Args:
        tests: Differences, one per seed, and their margin, of each.

    Returns:
        ``holds`` if p < 0.05 for all, ``does not hold`` if p < 0.05 for the opposite of one, after
        Holm's correction; else ``undecided``.
    """
    if tests and all(p_above(*test) < ALPHA for test in tests):
        return ClaimResult.HOLDS
    below = holm([p_below(*test) for test in tests])
    return ClaimResult.FAILS if any(p < ALPHA for p in below) else ClaimResult.UNDECIDED


def final_result(
    cells: ClaimResult, pooled: ClaimResult, *, whole: bool, within: float = math.inf
) -> ClaimResult:
    """Return the final word on a claim.

    Args:
        cells: What the test of each cell gave, as from `decide`.
        pooled: What the test of the mean over cells gave.
        whole: Whether all that was planned has run.
        within: What no difference exceeds, as from `largest_difference`.
    """
    if cells == ClaimResult.FAILS:
        return cells
    if not whole:
        return ClaimResult.UNDECIDED
    if cells == ClaimResult.HOLDS:
        return cells
    if pooled != ClaimResult.UNDECIDED:
        return _ON_AVERAGE[pooled]
    return _WITHIN.get(within, ClaimResult.UNDECIDED)
