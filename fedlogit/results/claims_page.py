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
from fedlogit.results.verdict import (
    CLAIM_DETAILS,
    CLAIM_RULE,
    IN_FULL,
    VERDICT_DETAILS,
    VERDICT_RULE,
)

__all__ = ["claims_page"]

_NOTE = (
    "<!-- Made by `make papers` from the papers' files and the committed results; not by hand. -->"
)
_TESTS = (
    "Tests: `greater`, one side is above the other by more than a margin, which may be negative;"
    " `best`, one is above each of its rivals; `shrinking`, a gap, or a value, is smaller at the"
    " end of an axis than at its start; a gap has a sign unless the claim is about its `size`."
)


def claims_page(papers: Sequence[Paper], results: Path, root: str = "..") -> str:
    """Return the page.

    Args:
        papers: Their files.
        results: The folder with the ``summary`` that was committed.
        root: The way from the page to the repository's root, for links.

    Raises:
        DataError: if a file of results is damaged.
    """
    parts = [
        _NOTE,
        "# What the papers claim",
        "## When a number is reproduced",
        _rule(VERDICT_RULE, VERDICT_DETAILS),
        "## When a statement holds",
        _rule(CLAIM_RULE, CLAIM_DETAILS),
        _TESTS,
        "## Statements",
        "What each paper says in words follows, with the test that stands for it and its result at"
        " every scale with committed results, and how many comparisons point the claimed way."
        " A dash means that the scale does not test it. The numbers behind a result are in the"
        " linked files; what exactly is compared is said under `claims` in each paper's file.",
        *(_section(paper, results, root) for paper in papers if paper.claims),
    ]
    return "\n\n".join(parts)


def _rule(rule: str, details: Sequence[str]) -> str:
    """Return a rule and, as a list, what it leaves open."""
    return "\n".join([rule.removesuffix(IN_FULL), "", *(f"- {detail}" for detail in details)])


def _section(paper: Paper, results: Path, root: str) -> str:
    """Return a paper's claims, a row each."""
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
    links = [
        f"[{scale}]({root}/results/summary/{paper.paper}/{scale}/claims.md)" for scale in shown
    ]
    told = f"Evidence: {', '.join(links)}." if links else "No results are committed yet."
    return f"### {paper.title}\n\n{markdown(pd.DataFrame(rows))}\n\n{told}"


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
    text = result_text(row)
    whole = text == row["result"] != "not run"
    return f"{text}, {row['agree']} as claimed" if whole else text
