"""The rules by which a number counts as reproduced, and a statement as holding.

They are in one place, so that nobody has to guess what "reproduced" means. In both, the noisier
runs are, the less may be said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose `stats`, a second of imports, comes when it is used

from fedlogit.papers.metric_names import is_counted

__all__ = [
    "ALPHA",
    "CLAIM_DETAILS",
    "CLAIM_RESULTS",
    "CLAIM_RULE",
    "DECIDED",
    "INSIDE",
    "IN_FULL",
    "PARTLY",
    "REPRODUCED",
    "VERDICTS",
    "VERDICT_DETAILS",
    "VERDICT_RULE",
    "Sample",
    "decide",
    "final_result",
    "half_width",
    "holm",
    "interval",
    "is_exact",
    "largest_difference",
    "p_above",
    "p_below",
    "paired_interval",
    "verdict",
    "welch",
]

REPRODUCED = 0.01
PARTLY = 0.03
INSIDE = 0.90  # two one-sided tests at 5 %: the usual test of equivalence
_OUTSIDE = 0.95
ALPHA = 0.05
_ROUNDING = 1e-12  # 0.9554 - 0.9454 is a little more than 0.01

VERDICTS = (
    "reproduced",
    "partly reproduced",
    "inconclusive",
    "not reproduced",
    "single run, within",
    "single run, outside",
)
CLAIM_RESULTS = (
    "holds",
    "holds on average",
    "no difference larger than 1 point",
    "no difference larger than 3 points",
    "undecided",
    "does not hold on average",
    "does not hold",
    "not run",
)
DECIDED = frozenset(CLAIM_RESULTS) - {"undecided", "not run"}
IN_FULL = " The rule in full is in docs/claims.md."
VERDICT_RULE = (
    "A number is *reproduced* if the 90 % confidence interval of our mean minus the paper's lies"
    " within ±1 point, *partly reproduced* if it lies within ±3 points, *not reproduced* if the"
    " 95 % interval lies wholly outside ±3 points, and *inconclusive* otherwise. A single run is"
    " *within* 3 points or *outside*, and counts as neither. Only runs at the scale `paper`, on the"
    " paper's data (bytes also on other data), are judged." + IN_FULL
)
CLAIM_RULE = (
    "A statement *holds* if in every planned cell the difference between runs of the same seed is"
    " above the margin by a one-sided paired t test at 5 %, and *does not hold* if in some cell it"
    " is below by the same test, corrected for the number of cells after Holm. If the cells"
    " do not decide, the test of their mean does: it holds, or does not hold, *on average*. If that"
    " does not decide either, there is *no difference larger than* 1 or 3 points where the"
    " 90 % interval of every cell's difference lies within them; else it is *undecided*, with the"
    " reason." + IN_FULL
)
VERDICT_DETAILS = (
    "A point is 0.01 of a share such as accuracy; of any other quantity, such as a perplexity or"
    " a distance, it is 1 % of the paper's value. Limits are inclusive.",
    "Intervals are Welch's, with the degrees of freedom of Welch and Satterthwaite. The 90 %"
    " interval is taken to be no narrower than that of either mean alone, as Welch's can shrink"
    " while a spread grows: so more noise in our runs never improves a verdict.",
    "Missing information never improves one either. For *reproduced* and *partly reproduced*, a"
    " number without ± is given our standard deviation, and one without a number of runs is taken"
    " as a single run, or as two if it has a ±; for *not reproduced*, either is taken as exact."
    " If our deviation is used for both sides, only our degrees of freedom count.",
    "A single run of ours has no interval. *Single run, within* says that it is at most 3 points"
    " off, whatever the paper's spread.",
    "Bytes that are counted, and distances computed from a split without training, have no sampling"
    " error as long as all our runs agree: their difference itself is compared with 1 and 3 points,"
    " also for a single run. Any other quantity that is the same in several runs has an interval"
    " without width, which says less than it seems to: mostly it is at a bound, 0 or 1.",
    "Runs at other scales, on stand-in data, and that diverged have no verdict. Bytes have one on"
    " stand-in data, too: the size of a message does not depend on what the samples show.",
    "Where a scale shortens a setting, or a table has stand-in data, the runs that stand for a"
    " published number are shown beside it with their own setting, and are not judged.",
)
CLAIM_DETAILS = (
    "A cell is one combination of the axes that the statement is about; for `best`, one combination"
    " and rival. The paper's grid plans them, whether or not they were run.",
    "*Holds* needs no correction for many cells: all must pass, which chance makes harder and not"
    " easier. *Does not hold* needs only one, so p values of the opposite are corrected after Holm"
    " for the number of planned cells.",
    "The pooled test is of the mean over cells of the differences, seed by seed, for each rival; it"
    " is shown beside the cells. It can tell a small difference that is everywhere, which no cell"
    " shows by itself. *Holds on average* says that it does and that some cell is undecided; *does"
    " not hold on average*, that the mean is below the margin (for some rival, after Holm), though"
    " no single cell surely is.",
    "A cell counts as run once all planned seeds are there. Without all cells nothing holds, not"
    " even on average; a cell that fails decides at once, as missing runs cannot change that.",
    "*No difference larger than* is for shares such as accuracy: both sides differ by at most so"
    " much in every cell, whichever is ahead, by two one-sided tests at 5 % each, as the usual test"
    " of equivalence has it. It needs no correction, since all cells must pass.",
    "*Undecided* says why: cells lack planned runs (“k of m run” counts cells), there is *one"
    " seed*, *a run diverged*, or *intervals are too wide*, as the seeds differ too much.",
    "Where planned runs are missing and a data set has all of its own, the statement is also tested"
    " on that data set alone, and the result has this in brackets: by the same rule, as if no other"
    " cells were planned.",
    "A run that diverged leaves its cell, and the mean, undecided.",
    "A statement may hold on average although a cell points the other way: the numbers behind it"
    " say *not as claimed* there.",
    "Margins in points are the same at reduced scales, whose accuracies may be a third of the"
    " paper's: there 'no more than a point below' asks little, and 'by over 5.8 points' much.",
    "Nothing is corrected for the number of statements: of so many at 5 % a few may be chance.",
)


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


def is_exact(metric: str) -> bool:
    """Return whether no training enters a metric: bytes are counted, a split is drawn."""
    return is_counted(metric) or metric.endswith("_uniform")


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


def verdict(ours: Sample, theirs: Sample, unit: float = 1.0, *, exact: bool = False) -> str:
    """Return whether a mean reproduces a published one; one of `VERDICTS`.

    Args:
        ours: With n ≥ 1.
        theirs: What the paper says.
        unit: What the margins are relative to: 1 for shares such as accuracy, the paper's value
            for quantities with a unit.
        exact: Whether the quantity has no sampling error; see `is_exact`.
    """
    size = abs(ours.mean - theirs.mean)
    within, partly = REPRODUCED * unit + _ROUNDING, PARTLY * unit + _ROUNDING
    if exact and not ours.std > 0:  # NaN for a single run
        return VERDICTS[0] if size <= within else VERDICTS[1] if size <= partly else VERDICTS[3]
    if ours.n < 2:
        return VERDICTS[4] if size <= partly else VERDICTS[5]
    reach = size + half_width(ours, theirs, INSIDE)
    if reach <= partly:
        return VERDICTS[0] if reach <= within else VERDICTS[1]
    known = not math.isnan(theirs.std) and theirs.n >= 2
    least = theirs if known else Sample(theirs.mean, 0.0, 2)
    return VERDICTS[3] if size - welch(ours, least, _OUTSIDE) > partly else VERDICTS[2]


def paired_interval(differences: np.ndarray, level: float) -> tuple[float, float]:
    """Return the confidence interval of the mean of paired differences, (n,); NaN for n < 2."""
    n = len(differences)
    if n < 2:
        return math.nan, math.nan
    mean, error = float(np.mean(differences)), float(np.std(differences, ddof=1)) / math.sqrt(n)
    half = float(scipy.stats.t.ppf((1 + level) / 2, n - 1)) * error
    return mean - half, mean + half


def largest_difference(differences: Sequence[np.ndarray]) -> float:
    """Return the smallest margin, of 1 and 3 points, that no difference exceeds.

    Args:
        differences: Of each cell, one per seed, of a share.

    Returns:
        0.01 or 0.03 if the 90 % interval of every cell lies within it; else infinity.
    """
    ends = [abs(end) for cell in differences for end in paired_interval(cell, INSIDE)]
    for margin in (REPRODUCED, PARTLY):
        if ends and all(end <= margin + _ROUNDING for end in ends):  # no NaN is
            return margin
    return math.inf


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
    if error < _ROUNDING:  # all runs agree
        return 0.0 if above > _ROUNDING else 1.0
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


def decide(tests: Sequence[tuple[np.ndarray, float]]) -> str:
    """Return whether differences are above a margin in all of several tests.

    Args:
        tests: Differences, one per seed, and their margin, of each.

    Returns:
        ``holds`` if p < 0.05 for all, ``does not hold`` if p < 0.05 for the opposite of one, after
        Holm's correction; else ``undecided``.
    """
    if tests and all(p_above(*test) < ALPHA for test in tests):
        return "holds"
    below = holm([p_below(*test) for test in tests])
    return "does not hold" if any(p < ALPHA for p in below) else "undecided"


def final_result(cells: str, pooled: str, *, whole: bool, within: float = math.inf) -> str:
    """Return the final word on a statement; one of `CLAIM_RESULTS`.

    Args:
        cells: What the test of each cell gave, as from `decide`.
        pooled: What the test of the mean over cells gave.
        whole: Whether all that was planned has run.
        within: What no difference exceeds, as from `largest_difference`.
    """
    if cells == "does not hold":
        return cells
    if not whole:
        return "undecided"
    if cells == "holds":
        return cells
    if pooled != "undecided":
        return f"{pooled} on average"
    words = {REPRODUCED: "1 point", PARTLY: "3 points"}
    return f"no difference larger than {words[within]}" if within in words else "undecided"
