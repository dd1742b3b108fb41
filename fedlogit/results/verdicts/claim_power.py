"""How many seeds claims need: the power of their tests, from the differences seen so far."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fedlogit.papers.artefact import Artefact
from fedlogit.results.statistics.means import ROUNDING
from fedlogit.results.statistics.power import power, seeds_needed
from fedlogit.results.verdicts.claim_evidence import ClaimEvidence, evidence_for_claims
from fedlogit.results.verdicts.claim_tests import pooled

__all__ = ["POOLED", "claims_power"]

POOLED = "mean over cells"
_COLUMNS = ["claim", "comparison", "n", "difference", "std", "power", "seeds_needed"]


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
        negative, they are about its opposite, before Holm's correction for the number of
        comparisons, with which *does not hold* needs more seeds. With fewer than two seeds, or if
        a run diverged, they are NaN.

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
        yield comparison.name, comparison.differences_and_margin
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
