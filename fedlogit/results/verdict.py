"""The rules by which a number counts as reproduced, and a statement as holding.

They are in one place, so that nobody has to guess what "reproduced" means.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

__all__ = [
    "CLAIM_RULE",
    "PARTLY",
    "REPRODUCED",
    "VERDICT_RULE",
    "decide",
    "standard_error",
    "verdict",
]

REPRODUCED = 0.01
PARTLY = 0.03
_LEVEL = 0.95

VERDICT_RULE = (
    f"A number is *reproduced* if it differs from the paper's by at most {REPRODUCED} or twice the "
    f"combined standard error, whichever is larger, and *partly reproduced* within {PARTLY} or "
    "three times that error. Where the paper does not say how many runs are behind its ±, the "
    "whole ± counts as its error; a single run of ours adds none. Only runs at the scale `paper`, "
    "on the paper's data, are judged."
)
CLAIM_RULE = (
    "A statement *holds* if in every cell the difference between runs of the same seed is above "
    "the margin by a one-sided paired t test at 5 %, *does not hold* if in some cell it is below "
    "by the same test, and is *undecided* otherwise, always with a single seed."
)


def standard_error(std: float, n: float) -> float:
    """Return the standard error of a mean; 0 where the spread is unknown (NaN)."""
    return 0.0 if math.isnan(std) else std / math.sqrt(n)


def verdict(difference: float, error: float, unit: float = 1.0) -> str:
    """Return whether a mean reproduces a published one.

    Args:
        difference: Ours minus the paper's.
        error: Combined standard error, sqrt(ours² + paper's²).
        unit: What the tolerances are relative to: 1 for shares such as accuracy, the paper's
            value for quantities with a unit such as bytes.

    Returns:
        ``reproduced`` if |difference| ≤ max(0.01 unit, 2 error), ``partly reproduced`` if it is
        ≤ max(0.03 unit, 3 error), else ``not reproduced``.
    """
    size = abs(difference) - 1e-12  # 0.9554 - 0.9454 is a little more than 0.01
    if size <= max(REPRODUCED * unit, 2 * error):
        return "reproduced"
    return "partly reproduced" if size <= max(PARTLY * unit, 3 * error) else "not reproduced"


def decide(differences: np.ndarray, margin: float = 0.0) -> str:
    """Return whether paired differences are above a margin.

    Args:
        differences: One per seed, (n,); NaN where a run diverged.
        margin: What they should exceed.

    Returns:
        ``holds`` if mean - margin > t(0.95, n-1) s/√n; ``does not hold`` if it is below the
        negative of that; ``undecided`` in between, for n=1, and if a run diverged; ``not run``
        for n=0.
    """
    n = len(differences)
    if n == 0:
        return "not run"
    if n == 1 or not np.isfinite(differences).all():
        return "undecided"
    above = float(np.mean(differences)) - margin
    noise = float(stats.t.ppf(_LEVEL, n - 1) * np.std(differences, ddof=1) / math.sqrt(n))
    if above > noise:
        return "holds"
    return "does not hold" if above < -noise else "undecided"
