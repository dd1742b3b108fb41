"""A page of Markdown with every claim: how it is tested, and what came out at each scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.papers.model import Paper
from fedlogit.results.claims import result_text
from fedlogit.results.formatting import markdown
from fedlogit.results.templating import render
from fedlogit.results.verdict import (
    CLAIM_DETAILS,
    CLAIM_RULE,
    IN_FULL,
    VERDICT_DETAILS,
    VERDICT_RULE,
)

__all__ = ["claims_page"]


def claims_page(papers: Sequence[Paper], results: Path, root: str = "..") -> str:
    """Return the page.

    Args:
        papers: Their files.
        results: The folder with the ``summary`` that was committed.
        root: The way from the page to the repository's root, for links.

    Raises:
        DataError: if a file of results is damaged.
    """
    return render(
        "claims.md",
        root=root,
        verdict={"rule": VERDICT_RULE.removesuffix(IN_FULL), "details": VERDICT_DETAILS},
        claim={"rule": CLAIM_RULE.removesuffix(IN_FULL), "details": CLAIM_DETAILS},
        papers=[_section(paper, results) for paper in papers if paper.claims],
    )


def _section(paper: Paper, results: Path) -> dict[str, Any]:
    """Return a paper's claims, a row each, and the scales at which some were tested."""
    found = {scale: _judged(results, paper.paper, scale) for scale in paper.scales}
    shown = {scale: rows for scale, rows in found.items() if rows and scale != "smoke"}
    rows = [
        {
            "Claim": claim.text + (f" ({claim.section})" if claim.section else ""),
            "Test": f"`{claim.test}` on `{claim.source}`",
            **{f"`{scale}`": judged.get(key, "–") for scale, judged in shown.items()},
        }
        for key, claim in paper.claims.items()
    ]
    return {
        "name": paper.paper,
        "title": paper.title,
        "claims": markdown(pd.DataFrame(rows)),
        "scales": list(shown),
        "not_tested": paper.not_tested,
    }


def _judged(results: Path, paper: str, scale: str) -> Mapping[str, str]:
    """Return what came out for each claim at a scale; nothing if no results are committed."""
    path = results / "summary" / paper / scale / "claims.csv"
    if not path.exists():
        return {}
    try:
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        return {row["id"]: _told(row) for row in rows.to_dict("records")}
    except (KeyError, ValueError) as error:
        raise DataError(f"{path}: not a table of claims ({error})") from None


def _told(row: Mapping[Any, Any]) -> str:
    """Return the result, and how many comparisons are as claimed if all were run."""
    run, _, planned = row["run"].partition(" of ")
    whole = run == planned and row["result"] != "not run"
    return result_text(row) + (f", {row['agree']} as claimed" if whole else "")
