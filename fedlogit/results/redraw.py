"""Draw all that finished runs cover: tables, figures, summaries, and the record."""

from __future__ import annotations

import multiprocessing
import operator
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from fedlogit.papers import Plan
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.plan_writer import artefact_plan
from fedlogit.papers.published import check_published_files
from fedlogit.results.figures import write_figure
from fedlogit.results.record.files import write_record
from fedlogit.results.summary import write_summary
from fedlogit.results.tables import write_table
from fedlogit.results.training_costs import write_training
from fedlogit.results.verdicts.published import published
from fedlogit.runs.paths import ResultsLayout
from fedlogit.runs.plan_files import other_plans

__all__ = ["redraw"]


def redraw(plan: Plan, references: Path, out: Path, jobs: int = 1) -> list[Path]:
    """Write the tables, figures and summaries that finished runs cover, at every scale.

    Also the record, and what training took.

    Args:
        plan: Its settings draw from the runs there are (`partial`); it knows where they lie.
        references: The folder of published numbers, ``<paper>.csv``; a study may have none.
        out: The folder for ``tables``, ``figures``, ``summary``, the record and ``training.csv``.
        jobs: How many processes draw at once.

    Returns:
        What was written.

    Raises:
        DataError: if a run is damaged, or published numbers are wrong.
    """
    check_published_files(plan.papers.values(), references)
    runs = plan.layout.runs
    compared = [
        (paper.paper, scale)
        for paper in plan.papers.values()
        for scale in paper.scales
        if any(a.kind == "table" for a in plan.drawable_of(paper.paper, scale))
    ]
    drawings = [partial(_draw, a.as_artefact(runs), references, out) for a in plan.covered()]
    for paper, scale in compared:
        judged = [a.as_artefact(runs) for a in plan.judged(paper, scale)]
        drawings.append(partial(_summarise, judged, references, paper, scale, out))
    paths = [path for written in _all_of(drawings, jobs) for path in written]
    # Comparisons that are older may lie beside these, of runs that no longer are.
    return [*paths, *write_record(plan, references, out, compared), write_training(plan, out)]


def _all_of(drawings: Sequence[Callable[[], list[Path]]], jobs: int) -> list[list[Path]]:
    """Return what each drawing wrote, in their order, with `jobs` of them at once."""
    if jobs == 1:
        return [drawing() for drawing in drawings]
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, context, _depend_on_the_caller) as pool:
        return list(pool.map(operator.call, drawings))


def _depend_on_the_caller() -> None:
    """Let a process of the pool leave Ctrl-C to its caller, and end when that has been killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_caller, daemon=True).start()


def _end_with_the_caller() -> None:
    if caller := multiprocessing.parent_process():
        caller.join()
        os._exit(1)


def _draw(artefact: Artefact, references: Path, out: Path) -> list[Path]:
    path = ResultsLayout(out).artefact(
        artefact.kind, artefact.paper, artefact.scale, artefact.id, "md"
    )
    if artefact.kind == "table":
        written = write_table(artefact, path.with_suffix(""))
    else:
        written = write_figure(artefact, path, published(references, artefact.paper))
    _outdate_plans([artefact], out)
    return written


def _summarise(
    judged: Sequence[Artefact], references: Path, paper: str, scale: str, out: Path
) -> list[Path]:
    folder = ResultsLayout(out).summary(paper, scale)
    written = write_summary(judged, published(references, paper), folder)
    _outdate_plans(judged, out)
    return written


def _outdate_plans(artefacts: Sequence[Artefact], out: Path) -> None:
    """Make the other plans newer than what was just made: with them, Snakemake makes it again.

    They are not removed, as its own rules do: a call of Snakemake may be at work with them.
    """
    for artefact in artefacts:
        for other in other_plans(ResultsLayout(out).plans / f"{artefact_plan(artefact)}.json"):
            other.touch()
