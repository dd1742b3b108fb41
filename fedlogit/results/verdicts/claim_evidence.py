"""The numbers behind a paper's claims: for each, the comparisons of all its cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.claim_options import Comparison, check_test
from fedlogit.results.collect import collect
from fedlogit.results.verdicts.claim_names import Naming, naming_of
from fedlogit.results.verdicts.claim_tests import TESTS, Evidence, cells, dataset_of

__all__ = ["ClaimEvidence", "evidence_for_claims"]


@dataclass(frozen=True)
class ClaimEvidence:
    """What was compared for a claim.

    Attributes:
        options: What the claim compares.
        datasets: By cell, its data set; nothing if it has several.
        cells: By cell, its comparisons.
    """

    options: Comparison
    datasets: list[str]
    cells: list[list[Evidence]]

    @property
    def comparisons(self) -> list[Evidence]:
        """Return the comparisons of all cells."""
        return [evidence for of_cell in self.cells for evidence in of_cell]


def evidence_for_claims(artefact: Artefact) -> tuple[pd.DataFrame, dict[str, ClaimEvidence]]:
    """Return the planned runs of a table or figure, a row each, and what its claims compare.

    Raises:
        DataError: if a run is missing or damaged.
        FedlogitError: if a claim names an unknown test, key or axis, or is too wide.
    """
    options = {
        key: Comparison.read(claim.options, f"claim {key}")
        for key, claim in artefact.claims.items()
    }
    if not options:
        return pd.DataFrame(), {}
    frame = _planned_runs(artefact, sorted({m for o in options.values() for m in o.metrics()}))
    tests = {key: claim.test for key, claim in artefact.claims.items()}
    naming = naming_of(artefact)
    return frame, {key: _tested(key, tests[key], options[key], frame, naming) for key in options}


def _tested(
    key: str, test: str, options: Comparison, frame: pd.DataFrame, naming: Naming
) -> ClaimEvidence:
    if test not in TESTS:
        raise unknown(f"test of claim {key}", test, TESTS)
    check_test(test, options, f"claim {key}")
    try:
        planned = list(cells(options, frame))
        datasets = [dataset_of(options, cell, frame) for cell in planned]
        found = [TESTS[test](options, cell, frame, naming) for cell in planned]
        return ClaimEvidence(options, datasets, found)
    except FedlogitError as error:
        raise FedlogitError(f"claim {key}: {error}") from None


def _planned_runs(artefact: Artefact, metrics: Sequence[str]) -> pd.DataFrame:
    """Return a row per planned run, in the grid's order; metrics of those `missing` are NaN.

    So are columns that a run's method does not log, which its `lacks` names.
    """
    run = collect(artefact, gaps=True, optional=metrics).assign(missing=False)
    lost = pd.DataFrame([missing.axes for missing in artefact.missing])
    lost.index = pd.Index([missing.before - 0.5 for missing in artefact.missing], dtype=float)
    nothing: dict[str, Any] = {"missing": True, "diverged": False, "dataset_note": ""}
    lacks = pd.Series([()] * len(lost), lost.index, dtype=object)
    lost = lost.assign(**nothing, **dict.fromkeys(metrics, math.nan), lacks=lacks)
    found = [part for part in (run, lost) if len(part)]  # an empty one turns integers to floats
    return pd.concat(found).sort_index(kind="stable")
