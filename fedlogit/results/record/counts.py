"""How many published numbers got which verdict: as a sentence, and as a table of papers."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fedlogit.papers import Paper
from fedlogit.papers.metric_names import is_share
from fedlogit.results.formatting import in_words, markdown, occurrences, sentence
from fedlogit.results.record.notes import Notes
from fedlogit.results.verdicts.rules import (
    PARTLY,
    UNJUDGED,
    VERDICTS,
    Unjudged,
    Verdict,
    is_exact,
    margin_unit,
)

__all__ = [
    "DECISIVE",
    "OUTCOMES",
    "caveats",
    "counts",
    "counts_sentence",
    "counts_table",
    "is_trained",
    "margin_units",
]

OUTCOMES = (*VERDICTS, *UNJUDGED)
"""All that the record's column `verdict` may say, the best first."""

DECISIVE = (Verdict.REPRODUCED, Verdict.PARTLY_REPRODUCED, Verdict.NOT_REPRODUCED)
"""The verdicts that say how near our mean is to the published number."""

_SINGLE = (Verdict.SINGLE_RUN_WITHIN, Verdict.SINGLE_RUN_OUTSIDE)
_UNJUDGED_IN_WORDS = {
    Unjudged.REDUCED_SCALE: "run at a reduced scale only",
    Unjudged.OTHER_SCALE: "run with other seeds or models only",
    Unjudged.STAND_IN_DATA: "run on stand-in data only",
    Unjudged.DIVERGED: "diverged",
    Unjudged.NOT_RUN: "not run",
}


def counts(rows: pd.DataFrame) -> dict[str, int]:
    """Return how many numbers got which of `OUTCOMES`, the best first.

    Args:
        rows: Numbers of the record, as from `fedlogit.results.record.numbers.record`; so everywhere
            in this module.
    """
    return occurrences(rows["verdict"], OUTCOMES)


def counts_sentence(rows: pd.DataFrame) -> str:
    """Return in words how many published numbers there are and how many got which verdict."""
    found = counts(rows)
    decided = [f"{found[name]} {name}" for name in DECISIVE if found[name]]
    undecided = []
    if inconclusive := found[Verdict.INCONCLUSIVE]:
        undecided.append(f"{inconclusive} inconclusive")
    if single := sum(found[name] for name in _SINGLE):
        within = found[Verdict.SINGLE_RUN_WITHIN]
        undecided.append(f"{single} with a single run ({within} within 3 points)")
    others = [f"{found[name]} {words}" for name, words in _UNJUDGED_IN_WORDS.items() if found[name]]
    number = sum(found[name] for name in DECISIVE)
    text = f"Of {len(rows)} published numbers, {number or 'none'} are decided"
    text += f": {in_words(decided)}." if decided else "."
    text += f" Undecided: {in_words(undecided)}." if undecided else ""
    return text + (f" Not judged: {in_words(others)}." if others else "")


def caveats(rows: pd.DataFrame, notes: Notes) -> list[str]:
    """Return, in a sentence for each verdict, how many say less than they seem to, and why.

    Args:
        rows: The numbers.
        notes: Which of them a setting was inferred from.
    """
    found = {name: rows[rows["verdict"] == name] for name in VERDICTS}
    reproduced, inconclusive = found[Verdict.REPRODUCED], found[Verdict.INCONCLUSIVE]
    few = {
        "need no training (bytes and distances)": ~is_trained(reproduced),
        "are shares that are 0 or 1 in every run": _at_a_bound(reproduced),
        "are no independent evidence, as a setting was inferred from them": notes.settings_from(
            reproduced
        ),
    }
    parts = [f"{int(numbers.sum())} {why}" for why, numbers in few.items() if numbers.any()]
    sentences = []
    if parts:
        rest = int((~pd.concat(few, axis=1).any(axis=1)).sum())
        sentences.append(
            f"Of the {len(reproduced)} reproduced numbers, {in_words(parts)}; a number may be"
            f" in several of these groups, and {rest} are in none."
        )
    if len(failed := found[Verdict.NOT_REPRODUCED]):
        why = {
            "need no training": ~is_trained(failed),
            "have no ± in the paper, whose spread is then taken as zero": is_trained(failed)
            & failed["published_std"].isna(),
        }
        parts = [f"{int(numbers.sum())} {words}" for words, numbers in why.items() if numbers.any()]
        if parts:
            sentences.append(f"Of the {len(failed)} not reproduced, {in_words(parts)}.")
    if wide := int(_too_wide(inconclusive).sum()):
        sentences.append(
            f"Of the {len(inconclusive)} inconclusive ones, {wide} have an interval wider than"
            " ±3 points: too few seeds to be reproduced or partly reproduced, whatever the mean."
        )
    return sentences


def counts_table(rows: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return a Markdown table: how many numbers of each paper got which verdict, or none.

    Numbers that need no training have a row of their own. Outcomes that no number has are left out.

    Args:
        rows: The numbers.
        papers: The papers, for what they are called.
    """
    trained = is_trained(rows)
    groups = [
        (f"{papers[str(name)].short_name}, {kind}", part)
        for name, of_paper in rows.groupby("paper", sort=False)
        for kind, part in (
            ("from training", of_paper[trained[of_paper.index]]),
            ("bytes and distances", of_paper[~trained[of_paper.index]]),
        )
        if len(part)
    ]
    shown = [name for name in OUTCOMES if counts(rows)[name]]
    table = pd.DataFrame(
        {"Published numbers": name, "All": str(len(part))}
        | {sentence(key): str(counts(part)[key] or "–") for key in shown}
        for name, part in [*groups, ("all", rows)]
    )
    return markdown(table, right=set(table.columns[1:]))


def is_trained(rows: pd.DataFrame) -> pd.Series:
    """Return, for each published number, whether training enters it: bytes are counted."""
    return ~rows["metric"].map(is_exact).astype(bool)


def margin_units(rows: pd.DataFrame) -> pd.Series:
    """Return `margin_unit` of each published number."""
    numbers = zip(rows["metric"], rows["published"], strict=True)
    units = [margin_unit(metric, published) for metric, published in numbers]
    return pd.Series(units, index=rows.index, dtype=float)


def _at_a_bound(rows: pd.DataFrame) -> pd.Series:
    """Return which numbers are 0 or 1 in all our runs, where little can go wrong."""
    share = rows["metric"].map(is_share).astype(bool)
    return share & is_trained(rows) & rows["ours"].isin((0, 1)) & (rows["std"] == 0)


def _too_wide(rows: pd.DataFrame) -> pd.Series:
    """Return which intervals fit between no limits: seeds are too few, whatever their mean."""
    return (rows["high"] - rows["low"]) / 2 > PARTLY * margin_units(rows)
