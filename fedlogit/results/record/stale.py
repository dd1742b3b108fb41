"""Whether the comparisons behind the record are of runs that are still planned and there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from fedlogit.errors import DataError
from fedlogit.papers import Plan
from fedlogit.results.record.numbers import comparisons
from fedlogit.results.verdicts.compare import runs_behind

__all__ = ["refuse_stale"]


def refuse_stale(plans: Sequence[Plan], results: Path, published: Collection[str]) -> None:
    """Refuse comparisons whose runs no plan has, or that are gone.

    Args:
        plans: Of the same papers; a run may be that of any.
        results: The folder with ``summary``.
        published: Runs that can be pulled, so that it does not matter whether they are here.

    Raises:
        DataError: naming the comparison and its first such run.
    """
    for paper in plans[0].papers.values():
        for scale, path in comparisons(paper, results):
            behind = runs_behind(path)
            planned = dict(_planned_runs(plans, paper.paper, scale)) if behind else {}
            for digest in behind:
                run = planned.get(digest)
                if run is None:
                    raise DataError(
                        f"{path} is of other runs than the paper's file plans now, such as"
                        f" {digest}; run make redraw"
                    )
                if run not in published and not plans[0].finished(run):
                    raise DataError(
                        f"{path} is of runs that are gone, such as {run}; run make redraw"
                    )


def _planned_runs(plans: Sequence[Plan], paper: str, scale: str) -> Iterator[tuple[str, str]]:
    """Yield every run that a comparison may be of: the hash that it ends in, and its path."""
    for plan in plans:
        for artefact in plan.judged(paper, scale):
            for cell, _ in artefact.planned():
                yield cell.run.rpartition("-")[2], cell.run
