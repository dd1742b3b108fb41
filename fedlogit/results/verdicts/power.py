"""How many seeds a claim needs: the power of its paired test, from the differences seen so far.

Power is that of the one-sided paired t test which decides claims (`rules.CLAIM_RULE`): with n seeds
and a true effect d (mean difference over its standard deviation between seeds), its statistic has a
noncentral t distribution with n - 1 degrees of freedom and noncentrality d √n (Cohen 1988, ch. 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy  # whose `stats`, a second of imports, comes when it is used

from fedlogit.papers.artefact import Artefact
from fedlogit.results.verdicts.claim_evidence import ClaimEvidence, evidence_for_claims
from fedlogit.results.verdicts.claim_tests import pooled
from fedlogit.results.verdicts.statistics import ALPHA, ROUNDING

__all__ = ["MOST_SEEDS", "POOLED", "claims_power", "power", "seeds_needed"]

MOST_SEEDS = 1000
POOLED = "mean over cells"
_COLUMNS = ["claim", "comparison", "n", "difference", "std", "power", "seeds_needed"]


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


def claims_power(
    artefacts: Sequence[Artefact], seeds: int, claims: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the power of the tests of claims, a row for each comparison and for their mean.

    Args:
        artefacts: Tables and figures with claims.
        seeds: The number of seeds for which power is computed, n ≥ 2.
        claims: The ids of those to return; none given: all.

    Returns:
        By row: the claim, what is compared, the seeds so far (`n`), their mean `difference` beyond
        the claim's margin and its standard deviation, the `power` with `seeds` new ones, and the
        seeds needed for 80 %. Both are for the direction seen: for a claim whose difference is
        negative, they are about its opposite. With fewer than two seeds, or if a run diverged,
        they are NaN.

    Raises:
        DataError: if a run is missing or damaged.
        FedlogitError: if a claim is malformed.
    """
    rows = [
        {"claim": key, "comparison": name, **_power(*test, seeds)}
        for artefact in artefacts
        for key, evidence in evidence_for_claims(artefact)[1].items()
        if not claims or key in claims
        for name, test in _tests(evidence)
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _tests(evidence: ClaimEvidence) -> Iterator[tuple[str, tuple[np.ndarray, float]]]:
    """Yield the name and the test of each comparison and, of several cells, of their mean."""
    for comparison in evidence.comparisons:
        yield comparison.name, comparison.test
    if len(evidence.cells) > 1:
        for rival, test in pooled(evidence.comparisons).items():
            yield f"{POOLED}: {rival}" if rival else POOLED, test


def _power(differences: np.ndarray, margin: float, seeds: int) -> dict[str, Any]:
    n = len(differences)
    mean = float(np.mean(differences)) - margin if n else math.nan
    row = {"n": n, "difference": mean, "std": math.nan, "power": math.nan, "seeds_needed": math.nan}
    if n < 2 or not np.isfinite(differences).all():
        return row
    std = float(np.std(differences, ddof=1))
    size = abs(mean)
    effect = size / std if std > ROUNDING else (math.inf if size > ROUNDING else 0.0)
    return row | {"std": std, "power": power(effect, seeds), "seeds_needed": seeds_needed(effect)}
