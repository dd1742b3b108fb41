"""What came out of each paper's numbers, in a row."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fedlogit.papers import Paper
from fedlogit.results.formatting import markdown
from fedlogit.results.record.numbers import counts, is_trained
from fedlogit.results.verdicts.rules import UNJUDGED, VERDICTS

__all__ = ["papers_markdown"]


def papers_markdown(rows: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return a table with a row per paper: how many of its numbers got which verdict, or none.

    Args:
        rows: As from `fedlogit.results.record.numbers.record`.
        papers: The papers, for what they are called.
    """
    table = []
    for name, of_paper in rows.groupby("paper", sort=False):
        judged = of_paper["verdict"].isin(VERDICTS)
        of_training = is_trained(of_paper)
        table.append(
            {
                "Paper (published numbers)": f"{papers[str(name)].short_name} ({len(of_paper)})",
                "From training": _counts_in_words(of_paper[judged & of_training], VERDICTS),
                "Bytes and distances": _counts_in_words(of_paper[judged & ~of_training], VERDICTS),
                "No verdict": _counts_in_words(of_paper[~judged], UNJUDGED),
            }
        )
    return markdown(pd.DataFrame(table))


def _counts_in_words(rows: pd.DataFrame, outcomes: tuple[str, ...]) -> str:
    """Return how many numbers got which outcome, those that any got, the best first."""
    found = counts(rows)
    told = [f"{found[name]} {_outcome_in_words(name)}" for name in outcomes if found[name]]
    return "; ".join(told) or "–"


def _outcome_in_words(outcome: str) -> str:
    """Return "outside (single run)" for "single run, outside", and others as they are."""
    single, _, rest = outcome.partition("single run, ")
    return f"{rest} (single run)" if not single and rest else outcome
