"""The record: every number that the papers publish, ours beside it or why there is none.

It is made of the comparisons that `fedlogit.results.summary` wrote, so each verdict is given once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.papers import Paper, Plan
from fedlogit.papers.published import check_published_files
from fedlogit.papers.schema import JUDGED_SCALE, TEST_SCALE
from fedlogit.results.formatting import read_csv
from fedlogit.results.record.notes import read_notes
from fedlogit.results.verdicts.compare import BEHIND, read_comparison
from fedlogit.results.verdicts.counterparts import matching_runs
from fedlogit.results.verdicts.number_rows import (
    RecordedNumber,
    published_numbers,
    recorded_numbers,
)
from fedlogit.results.verdicts.published import published
from fedlogit.results.verdicts.rules import Unjudged
from fedlogit.runs.paths import ResultsLayout

__all__ = ["as_comparison", "comparisons", "preferred", "read_record", "record"]

T = TypeVar("T")

_KEYS = ["table", "dataset", "partition", "method", "where", "metric"]
_PUBLISHED = {"mean": "published", "std": "published_std", "n": "published_n"}
_SOURCE = ["scale", "device", "counterpart"]
_TEXT = [*_SOURCE, "code_versions", "runs"]
_OURS = ["ours", "std", "n", "diverged", "difference", "low", "high", "verdict", *_SOURCE, *BEHIND]
_COLUMNS = [
    *("paper", *_KEYS, *_PUBLISHED.values()),
    *("ours", "std", "n", "planned", *_SOURCE),
    *("difference", "low", "high", "verdict", "why"),
    *BEHIND,
]


def record(
    plan: Plan, references: Path, results: Path, among: Collection[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """Return a row per published number of all papers of a plan, in the order of the references.

    A number is compared at the scale that is `preferred`: ``paper`` if there is a run of it, which
    alone decides, else the reduced scale with the most seeds (of equals, the last in the paper's
    file); scale ``smoke`` does not count.
    `n` runs are behind `ours`, of `planned` at the scale ``paper``; `why` says why there is no
    verdict, or fewer seeds than planned.

    Args:
        plan: Says which runs the papers' tables have.
        references: The folder of published numbers and of notes on them.
        results: The folder with ``summary``, as `fedlogit.results.summary.write_summary` left it.
        among: The papers and scales whose comparisons count; None: of all that are there.

    Raises:
        DataError: if a comparison was made with other published numbers, or these are wrong.
    """
    check_published_files(plan.papers.values(), references)
    parts = [
        _rows_of_paper(plan, paper, references, _comparisons_among(paper, results, among))
        for paper in plan.papers.values()
    ]
    if not any(map(len, parts)):
        return pd.DataFrame(columns=_COLUMNS)
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True)
    notes = read_notes(references).why(rows)
    reasons = [_why(row, note) for row, note in zip(recorded_numbers(rows), notes, strict=True)]
    return rows.assign(why=reasons)[_COLUMNS]


def _comparisons_among(
    paper: Paper, results: Path, among: Collection[tuple[str, str]] | None
) -> list[tuple[str, Path]]:
    """Return what `comparisons` yields, less what is not `among` the papers and scales given."""
    found = comparisons(paper, results)
    return [
        (scale, path) for scale, path in found if among is None or (paper.paper, scale) in among
    ]


def _rows_of_paper(
    plan: Plan, paper: Paper, references: Path, there: Sequence[tuple[str, Path]]
) -> pd.DataFrame:
    """Return the rows of a paper, still without reasons."""
    numbers = published(references, paper.paper)
    if numbers.empty:
        return pd.DataFrame()
    rows = numbers.rename(columns=_PUBLISHED).assign(paper=paper.paper)
    ours = _preferred_rows([_our_side(numbers, *found) for found in there], numbers)
    planned = _planned_runs(plan, paper.paper)
    rows["planned"] = [
        len(matching_runs(planned[row["table"]], row)) if row["table"] in planned else 0
        for row in published_numbers(numbers)
    ]
    return pd.concat([rows.reset_index(drop=True), ours], axis=1)


def comparisons(paper: Paper, results: Path) -> Iterator[tuple[str, Path]]:
    """Yield the scales with a comparison and its file, the one to prefer of equals last."""
    scales = sorted(paper.scales, key=lambda name: name == JUDGED_SCALE)
    for scale in (name for name in scales if name != TEST_SCALE):
        path = ResultsLayout(results).summary(paper.paper, scale) / "compare.csv"
        if path.exists():
            yield scale, path


def preferred(scales: Mapping[T, tuple[int, int]]) -> T | None:
    """Return which of several scales to show; None if there is none.

    It is the one that decides most, of equals the one with the most seeds, and of these the last.

    Args:
        scales: How much each decides (numbers with a verdict, or claims), and its seeds.
    """
    return max(reversed([*scales]), key=scales.__getitem__, default=None)


def _our_side(numbers: pd.DataFrame, scale: str, path: Path) -> pd.DataFrame:
    """Return our side of a comparison, a row per published number and in their order.

    Raises:
        DataError: if it is damaged, or has not just these numbers.
    """
    found = read_comparison(path)
    found = found if "where" in found else found.assign(where="")
    if lacking := [column for column in BEHIND if column not in found]:
        raise DataError(f"{path}: column {lacking[0]!r} is missing; run make redraw")
    keyed = found.set_index([*_KEYS, "paper"])[_OURS]
    wanted = pd.MultiIndex.from_frame(numbers[[*_KEYS, "mean"]])
    if not keyed.index.is_unique or set(keyed.index) != set(wanted):
        raise DataError(
            f"{path} is not of the published numbers that are there now; run"
            " python -m fedlogit redraw"
        )
    aligned = keyed.loc[wanted].reset_index(drop=True)
    return aligned.assign(at_judged_scale=scale == JUDGED_SCALE)


def _preferred_rows(found: Sequence[pd.DataFrame], numbers: pd.DataFrame) -> pd.DataFrame:
    """Return, for each published number, the comparison to show."""
    if not found:
        empty = pd.DataFrame(index=range(len(numbers)), columns=_OURS, dtype=float)
        return empty.assign(n=0, diverged=0, verdict=Unjudged.NOT_RUN, **dict.fromkeys(_TEXT, ""))
    best = found[0].copy()
    records = [other[["verdict", "at_judged_scale", "n"]].to_dict("records") for other in found]
    for row in range(len(numbers)):
        at = {place: rows[row] for place, rows in enumerate(records)}
        run = {place: it for place, it in at.items() if it["verdict"] != Unjudged.NOT_RUN}
        shown = preferred({place: (it["at_judged_scale"], it["n"]) for place, it in run.items()})
        if shown is not None:
            best.loc[row] = found[shown].loc[row]
    return best[_OURS].fillna(dict.fromkeys(_TEXT, ""))


def _planned_runs(plan: Plan, paper: str) -> Mapping[str, pd.DataFrame]:
    """Return the runs of each table at the scale ``paper``, as axes and seeds, finished or not."""
    if JUDGED_SCALE not in plan.papers[paper].scales:
        return {}
    tables = [a.as_artefact(plan.layout.runs) for a in plan.judged(paper, JUDGED_SCALE)]
    return {
        table.id: pd.DataFrame(
            [*(run.axes for run in table.runs), *(m.axes for m in table.missing)]
        )
        for table in tables
    }


def _why(row: RecordedNumber, note: str) -> str:
    """Return why a number has no verdict, or not all of its seeds, or ""."""
    planned, n = row["planned"], row["n"]
    runs = "1 run" if planned == 1 else f"{planned} runs"
    more = f"; {note}" if note else ""
    if row["verdict"] == Unjudged.NOT_RUN:
        return (f"0 of {runs}" if planned else "no run of ours is planned") + more
    if row["verdict"] in (Unjudged.REDUCED_SCALE, Unjudged.OTHER_SCALE):
        return f"at {row['scale']} only, which is not judged; at paper 0 of {runs}{more}"
    if row["verdict"] in (Unjudged.STAND_IN_DATA, Unjudged.DIVERGED):
        return f"{row['verdict']}, which is not judged{more}"
    return f"{n} of {runs}" if n < planned else ""


def read_record(results: Path) -> pd.DataFrame:
    """Return the record that was written into a folder of results.

    Raises:
        DataError: if there is none.
    """
    text = ["paper", *_KEYS, *_TEXT, "verdict", "why"]
    rows = read_csv(results / "record.csv", _COLUMNS, dict.fromkeys(text, str))
    return rows[_COLUMNS].fillna(dict.fromkeys(text, ""))


def as_comparison(rows: pd.DataFrame) -> pd.DataFrame:
    """Return numbers of one paper as `fedlogit.results.verdicts.compare.compare` names them."""
    names = {"published": "paper", "published_std": "paper_std", "published_n": "paper_n"}
    return rows.drop(columns="paper").rename(columns=names)
