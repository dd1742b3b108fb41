"""The last lines that a command prints: what was made, three numbers, where the rest is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import pandas as pd

from fedlogit.papers import Plan
from fedlogit.papers.planned import PlannedArtefact
from fedlogit.papers.schema import JUDGED_SCALE, Paper
from fedlogit.results.formatting import spread
from fedlogit.results.metrics import metric_label
from fedlogit.results.verdicts.compare import read_comparison
from fedlogit.results.verdicts.number_rows import ComparedNumber, compared_numbers
from fedlogit.results.verdicts.rules import VERDICTS, Unjudged
from fedlogit.runs.paths import ResultsLayout

__all__ = ["closing", "where_to_look"]

_SHOWN = 3
_NUMBER = ["table", "method", "dataset", "partition", "where", "metric"]
_NEXT = {
    JUDGED_SCALE: "snakemake --cores all publish adds these runs to the cache (docs/cache.md)",
    "smoke": "make reproduce: real data at the scale quick, in minutes (docs/scales.md)",
    "": "make reproduce trains the quick scale here; SCALE=paper what is missing (docs/scales.md)",
}
_LARGER = "make reproduce SCALE=paper DATASETS=mnist SEEDS=0: a part at full size (docs/scales.md)"

Comparisons = Sequence[tuple[Paper, pd.DataFrame]]


def closing(plan: Plan, made: Sequence[PlannedArtefact], following: Iterable[str]) -> list[str]:
    """Return what was made, three numbers beside the paper's, and the lines that follow.

    A number that has a verdict is shown before one that has none, and the method that a paper
    proposes before others; each paper has one before any has two.

    Args:
        plan: It knows which runs there are, and where tables and summaries lie.
        made: The tables and figures, of any papers at any scales.
        following: Where the rest is, and what to do next; see `where_to_look`.

    Raises:
        DataError: if a paper with tables has no comparison, or a damaged one.
    """
    runs = {run for artefact in made for run in plan.runs(artefact) if plan.finished(run)}
    of = {(a.paper.paper, a.scale): a.paper for a in made if a.kind == "table"}
    first = sorted(of, key=lambda key: key[1] != JUDGED_SCALE)  # the scale whose numbers are judged
    layout = ResultsLayout(plan.results)
    compared = [(of[key], read_comparison(layout.summary(*key) / "compare.csv")) for key in first]
    return [
        f"Made at {_scales_in_words(made)}: {_counts_drawn(made)}, from {len(runs)} finished runs.",
        *(f"  {line}" for line in islice(_number_lines(compared), _SHOWN)),
        *([_counts_with_runs(compared)] if compared else []),
        *following,
    ]


def where_to_look(results: Path, full: Path, report: Path, scale: str = "") -> list[str]:
    """Return where pictures and all numbers are, and what to do next.

    Args:
        results: The folder with ``tables`` and ``figures``.
        full: The file with every number.
        report: The file with every table and figure; it may not have been made.
        scale: What was made; "" for all there is.
    """
    return [
        f"Report: {report}" if report.exists() else f"Report: make report writes {report}",
        f"Every number: {full}; tables and figures: {results}/tables, {results}/figures",
        f"Next: {_NEXT.get(scale, _LARGER)}",
    ]


def _scales_in_words(made: Sequence[PlannedArtefact]) -> str:
    names = list(dict.fromkeys(artefact.scale for artefact in made))
    return f"scale {names[0]}" if len(names) == 1 else f"scales {', '.join(names) or 'none'}"


def _counts_drawn(made: Sequence[PlannedArtefact]) -> str:
    kinds = [artefact.kind for artefact in made]
    papers = dict.fromkeys(artefact.paper.short_name for artefact in made)
    drawn = f"{kinds.count('table')} tables and {kinds.count('figure')} figures"
    return f"{drawn} of {', '.join(papers)}"


def _number_lines(compared: Comparisons) -> Iterator[str]:
    """Yield a line per number that was run: the first of each paper, then the second of each."""
    of_paper: dict[str, list[tuple[bool, bool, str]]] = {}
    for paper, rows in compared:
        found = of_paper.setdefault(paper.paper, [])
        for row in compared_numbers(rows[rows["verdict"] != Unjudged.NOT_RUN]):
            judged = row["verdict"] in VERDICTS
            proposed = row["method"].partition("(")[0] in paper.proposes
            found.append((not judged, not proposed, _number_in_words(row, paper)))
    queues = [
        [line for *_, line in sorted(q, key=lambda found: found[:2])] for q in of_paper.values()
    ]
    yield from (line for turn in zip_longest(*queues) for line in turn if line)


def _number_in_words(row: ComparedNumber, paper: Paper) -> str:
    """Return a published number, ours, and the verdict or why there is none."""
    places = (row["method"], row["dataset"], row["partition"])
    method, *work = (paper.labels.get(name, name) for name in places)
    name = paper.short_name
    ours = spread(row["ours"], row["std"], row["metric"])
    theirs = spread(row["paper"], row["paper_std"], row["metric"])
    if row["counterpart"]:  # the method is the paper's, and the run of another setting
        ours += f" (ours: {row['counterpart']})"
    judged = row["verdict"] in VERDICTS
    return (
        f"{method if method == name else f'{name}: {method}'} on {', '.join(filter(None, work))}:"
        f" {metric_label(row['metric'], paper.samples(row['dataset']))} {ours}, paper {theirs};"
        f" {row['verdict']}{'' if judged else ': not judged'}"
    )


def _counts_with_runs(compared: Comparisons) -> str:
    """Return how many published numbers of each paper have runs, at any of the scales."""
    of_paper: dict[str, list[pd.DataFrame]] = {}
    for paper, rows in compared:
        of_paper.setdefault(paper.short_name, []).append(rows)
    frames = {name: pd.concat(parts) for name, parts in of_paper.items()}
    counts = [_count_with_runs(name, rows) for name, rows in frames.items() if not rows.empty]
    return f"Published numbers with runs here: {', '.join(counts) or 'none was published'}."


def _count_with_runs(paper: str, rows: pd.DataFrame) -> str:
    number = [rows[key] for key in _NUMBER if key in rows]
    run = (rows["verdict"] != Unjudged.NOT_RUN).groupby(number, dropna=False).any()
    return f"{paper} {int(run.sum())} of {len(run)}"
