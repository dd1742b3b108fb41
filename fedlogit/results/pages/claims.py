"""A page of Markdown with every claim: how it is tested, and what came out at each scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fedlogit.papers.schema import TEST_SCALE, Claim, Paper
from fedlogit.results.formatting import markdown
from fedlogit.results.pages.templating import render
from fedlogit.results.verdicts.claims import read_claims, result_text, with_section
from fedlogit.results.verdicts.rules import (
    CLAIM_RULE,
    DECIDED,
    IN_FULL,
    UNTESTED,
    VERDICT_RULE,
    ClaimResult,
)
from fedlogit.runs.paths import ResultsLayout

__all__ = ["ClaimOutcome", "claims_page"]


_RESULTS_TOGETHER = {
    "Hold": (ClaimResult.HOLDS,),
    "Hold on average": (ClaimResult.HOLDS_ON_AVERAGE,),
    "No difference larger than 1 or 3 points": (
        ClaimResult.WITHIN_1_POINT, ClaimResult.WITHIN_3_POINTS,
    ),
    "Undecided": (ClaimResult.UNDECIDED,),
    "Do not hold on average": (ClaimResult.FAILS_ON_AVERAGE,),
    "Do not hold": (ClaimResult.FAILS,),
    "Not run": (ClaimResult.NOT_RUN,),
}  # fmt: skip


class ClaimOutcome(NamedTuple):
    """What came out for a claim at a scale.

    Attributes:
        result: One of `ClaimResult`.
        text: The result with how much was run, for people.
        claim: The claim in the scale's words.
        data: A note on its data, if they are not the paper's.
    """

    result: str
    text: str
    claim: str
    data: str


def claims_page(papers: Sequence[Paper], results: Path) -> str:
    """Return the page.

    Args:
        papers: Their files.
        results: The folder with the ``summary`` that was committed.

    Raises:
        DataError: if a file of results is damaged.
    """
    return render(
        "claims.md",
        verdict_rule=VERDICT_RULE.removesuffix(IN_FULL),
        claim_rule=CLAIM_RULE.removesuffix(IN_FULL),
        counts=_counts(papers, results),
        papers=[_section(paper, results) for paper in papers if paper.claims],
    )


def _counts(papers: Sequence[Paper], results: Path) -> str:
    """Return a table that counts each paper's own claims by result; ours have no section.

    It has a row for each scale at which at least one of them is decided.
    """
    rows = []
    for paper in papers:
        own = {key for key, claim in paper.claims.items() if claim.section}
        for scale, judged in _shown(paper, results).items():
            found = pd.Series([o.result for key, o in judged.items() if key in own], dtype=object)
            if not found.isin(DECIDED).any():
                continue
            by_result = {k: int(found.isin(v).sum()) for k, v in _RESULTS_TOGETHER.items()}
            place = {"Claims of": paper.short_name, "Scale": f"`{scale}`"}
            counted = {"All": sum(by_result.values()), **by_result}
            rows.append(place | {name: str(count or "–") for name, count in counted.items()})
    table = pd.DataFrame(rows)
    return markdown(table, right=table.columns[2:])


def _shown(paper: Paper, results: Path) -> dict[str, Mapping[str, ClaimOutcome]]:
    """Return what came out for each claim, by scale; only scales that have results."""
    found = {scale: _outcomes(results, paper.paper, scale) for scale in paper.scales}
    return {scale: rows for scale, rows in found.items() if rows and scale != TEST_SCALE}


def _section(paper: Paper, results: Path) -> dict[str, Any]:
    """Return a paper's claims, a row each, and the scales at which some were tested."""
    shown = _shown(paper, results)
    notes: dict[str, int] = {}
    rows = [
        {
            "Claim": with_section(claim.text, claim.section),
            "Test": f"`{claim.test}` on `{claim.source}`",
            **{
                f"`{scale}`": _cell(judged.get(key), claim, notes)
                for scale, judged in shown.items()
            },
        }
        for key, claim in paper.claims.items()
    ]
    return {
        "name": paper.paper,
        "title": paper.title,
        "claims": markdown(pd.DataFrame(rows)),
        "notes": list(notes),
        "scales": {scale: paper.scales[scale].summary.rstrip(".") for scale in shown},
        "not_tested": paper.not_tested,
    }


def _outcomes(results: Path, paper: str, scale: str) -> Mapping[str, ClaimOutcome]:
    """Return what came out for each claim at a scale; nothing if no results are committed."""
    path = ResultsLayout(results).summary(paper, scale) / "claims.csv"
    if not path.exists():
        return {}
    return {row["id"]: _outcome_of_row(row) for row in read_claims(path).to_dict("records")}


def _outcome_of_row(row: Mapping[Any, Any]) -> ClaimOutcome:
    """Return the result, and how many comparisons are as claimed if all were run."""
    run, _, planned = row["run"].partition(" of ")
    whole = run == planned and row["result"] not in UNTESTED
    text = result_text(row) + (f", {row['agree']} as claimed" if whole else "")
    return ClaimOutcome(row["result"], text, row["text"], row["data"] if run != "0" else "")


def _cell(judged: ClaimOutcome | None, claim: Claim, notes: dict[str, int]) -> str:
    """Return a result with the numbers of its notes, which are added if they are new."""
    if judged is None or judged.result == ClaimResult.NOT_PLANNED:
        return "–"
    worded = f"Tested as: {judged.claim}." if judged.claim != claim.text else ""
    own = [note for note in (worded, f"Data: {judged.data}." if judged.data else "") if note]
    numbers = sorted(notes.setdefault(note, len(notes) + 1) for note in own)
    return judged.text + (f" [{', '.join(map(str, numbers))}]" if numbers else "")
