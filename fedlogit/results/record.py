"""The record: every published number of every paper, ours beside it, and what may be said of it.

It is put together from the comparisons that each paper has at each scale. A number is judged at the
scale ``paper`` only; where there is none of ours, that of a reduced scale is shown, unjudged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.papers.model import Paper
from fedlogit.results.compare import RIGHT, comparison_table, published
from fedlogit.results.formatting import markdown, write_csv, write_text
from fedlogit.results.record_figure import record_figure
from fedlogit.results.style import save_figure
from fedlogit.results.verdict import VERDICT_RULE, VERDICTS

__all__ = ["OUTCOMES", "record", "record_markdown", "write_record"]

REDUCED, NOT_RUN = "reduced scale", "not run"
OUTCOMES = (*VERDICTS, "stand-in data", "diverged", REDUCED, NOT_RUN)
"""What a row may say, from the best to the least that is known."""
_KEYS = ["table", "dataset", "partition", "method", "where", "metric"]
_COLUMNS = [
    *("paper_name", *_KEYS, "paper", "paper_std", "paper_n", "ours", "std", "n", "scale"),
    *("device", "difference", "low", "high", "verdict", "why"),
]
_WHY = {
    "single run, within": "one run of ours has no interval",
    "single run, outside": "one run of ours has no interval",
    "inconclusive": "the interval is too wide to say",
    "stand-in data": "another data set in place of the paper's",
    "diverged": "a run of ours diverged",
    REDUCED: "only run at a reduced scale, which is not judged",
    NOT_RUN: "no finished run",
}


def record(summaries: Path, papers: Mapping[str, Paper], references: Path) -> pd.DataFrame:
    """Return a row per published number, in the order of the files that have them.

    Args:
        summaries: The folder of ``<paper>/<scale>/compare.csv``.
        papers: Each paper by its name; those without published numbers have no rows.
        references: The folder of published numbers.

    Raises:
        DataError: if a comparison lacks a published number, or has one twice.
    """
    frames = [_of_paper(paper, summaries, references) for paper in papers.values()]
    return pd.concat([pd.DataFrame(columns=_COLUMNS), *frames], ignore_index=True)[_COLUMNS]


def _of_paper(paper: Paper, summaries: Path, references: Path) -> pd.DataFrame:
    """Return the rows of a paper: of each number that at the first scale that has a run of it."""
    theirs = published(references, paper.paper)
    wanted = [tuple(map(str, row)) for row in theirs[_KEYS].itertuples(index=False)]
    best: dict[tuple[str, ...], dict[str, Any]] = {}
    for scale in sorted(paper.scales, key=lambda scale: scale != "paper"):
        path = summaries / paper.paper / scale / "compare.csv"
        if scale == "smoke" or not wanted or not path.exists():
            continue
        rows = _read(path)
        if sorted(rows) != sorted(wanted):
            raise DataError(f"{path} lacks published numbers of {paper.paper}; run make redraw")
        for key, row in rows.items():
            if key not in best or best[key]["verdict"] == NOT_RUN:
                best[key] = row
    nothing: dict[str, Any] = dict.fromkeys(("ours", "std", "difference", "low", "high"), math.nan)
    nothing |= {"n": 0, "verdict": NOT_RUN, "scale": "", "device": ""}
    return pd.DataFrame(
        {
            **dict(zip(_KEYS, key, strict=True)),
            **{"paper": row["mean"], "paper_std": row["std"], "paper_n": row["n"]},
            **best.get(key, nothing),
            "paper_name": paper.paper,
            "why": _WHY.get(best.get(key, nothing)["verdict"], ""),
        }
        for key, row in zip(wanted, theirs.to_dict("records"), strict=True)
    )


def _read(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the rows of a comparison by what they are of."""
    frame = pd.read_csv(path, dtype=dict.fromkeys(_KEYS, str))
    for key in _KEYS:
        frame[key] = frame[key].fillna("") if key in frame else ""
    shown = ("ours", "std", "n", "scale", "device", "difference", "low", "high", "verdict")
    rows = frame.fillna({"scale": "", "device": ""}).to_dict("records")
    found = {tuple(row[k] for k in _KEYS): {k: row[k] for k in shown} for row in rows}
    if len(found) < len(rows):
        raise DataError(f"{path} has a published number twice; run make redraw")
    return found


def counts(rows: pd.DataFrame) -> dict[str, int]:
    """Return how many numbers have each outcome, without those that none has."""
    found = rows["verdict"].value_counts()
    return {outcome: int(found[outcome]) for outcome in OUTCOMES if outcome in found}


def in_words(rows: pd.DataFrame) -> str:
    """Return the counts as a sentence."""
    found = counts(rows)
    judged = sum(found.get(verdict, 0) for verdict in VERDICTS)
    said = ", ".join(f"{n} {outcome}" for outcome, n in found.items() if outcome in VERDICTS)
    rest = ", ".join(f"{n} {outcome}" for outcome, n in found.items() if outcome not in VERDICTS)
    return (
        f"Of {len(rows)} published numbers {judged} have runs of ours at the paper's scale: {said}."
        f" Of the others: {rest}."
    )


def short_names(papers: Mapping[str, Paper]) -> dict[str, str]:
    """Return what each paper is called: its label, or its title as far as a colon."""
    return {
        name: paper.labels.get(name, paper.title.partition(":")[0])
        for name, paper in papers.items()
    }


def record_markdown(rows: pd.DataFrame, papers: Mapping[str, Paper]) -> str:
    """Return the record as a page: the counts, then a table a paper."""
    parts = ["# The record", in_words(rows), VERDICT_RULE]
    names = short_names(papers)
    for name, those in rows.groupby("paper_name", sort=False):
        table = comparison_table(those, papers[str(name)].labels, whole=True)
        table = table.assign(Scale=those["scale"], Why=those["why"])
        parts += [f"## {names[str(name)]}", in_words(those), markdown(table, right=RIGHT)]
    return "\n\n".join(parts)


def write_record(
    summaries: Path, papers: Mapping[str, Paper], references: Path, out: Path
) -> list[Path]:
    """Write ``<out>.csv``, ``.md``, ``.png``, ``.pdf``; return their paths, none without rows."""
    rows = record(summaries, papers, references)
    if rows.empty:
        return []
    there = {name: papers[name] for name in rows["paper_name"].unique()}
    table = write_csv(out.with_suffix(".csv"), rows)
    text = write_text(out.with_suffix(".md"), record_markdown(rows, there))
    figure = record_figure(rows, short_names(there), in_words(rows))
    return [table, text, *save_figure(figure, out)]
