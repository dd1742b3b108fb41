"""Redraw all tables, figures and summaries that finished runs cover, and the record.

    python -m fedlogit redraw

It covers every scale. With --prune, it also deletes results that no finished run gives, and pages
of the report on scales that a paper no longer has, provided that all published runs have been
pulled; results of papers that PAPERS lacks are kept. With --check, it draws into a temporary folder
and compares: numbers up to rounding, texts exactly, pictures by what one can see.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fedlogit.commands._cache import is_here, read_listing
from fedlogit.commands._settings import folder_options, of_finished_runs, refuse_missing
from fedlogit.commands._values import count
from fedlogit.papers import Plan
from fedlogit.results.closing import closing, where_to_look
from fedlogit.results.drawn_files import differences, orphans, strangers
from fedlogit.results.pages.report import outlived_pages
from fedlogit.results.redraw import redraw
from fedlogit.runs.paths import ResultsLayout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    folder_options(parser)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 if anything differs"
    )
    parser.add_argument(
        "--prune", action="store_true", help="delete results that no finished run gives"
    )
    parser.add_argument(
        "--jobs", type=count, default=1, metavar="N", help="how many processes draw at once"
    )


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    settings = of_finished_runs(args.papers)
    refuse_missing(args.results)
    plan = Plan(settings, args.papers, args.results)
    if not args.check:
        drawn = redraw(plan, args.references, args.results, args.jobs)
        lost = not_here(args.results) if args.prune else 0
        _print_drawn(plan, drawn, _pruned(plan, drawn) if args.prune and not lost else [])
        if others := strangers(args.results, plan.papers) if args.prune else []:
            print(
                f"left alone, as {args.papers} has no such paper: {', '.join(others)}",
                file=sys.stderr,
            )
        if lost:
            print(
                f"nothing was removed: {lost} published runs are not here, and what they give is no"
                " leftover; make pull, then again",
                file=sys.stderr,
            )
        return 0
    with TemporaryDirectory() as folder:
        drawn = redraw(plan, args.references, Path(folder), args.jobs)
        found = differences(args.results, Path(folder))
    for line in found:
        print(f"error: {line}; run make redraw", file=sys.stderr)
    print(f"{len(drawn)} files drawn again, {len(found)} differ from what is there")
    return int(bool(found))


def not_here(results: Path) -> int:
    """Return how many of the published runs have not been pulled."""
    layout = ResultsLayout(results)
    return sum(not is_here(layout.run(run)) for run in read_listing(layout.listing))


def _pruned(plan: Plan, drawn: Sequence[Path]) -> list[Path]:
    """Remove what was not drawn of the plan's papers, and pages of scales that are no more.

    Pages are made by Snakemake, so those of other scales stay.

    Returns:
        What was removed.
    """
    stale = orphans(plan.results, drawn, plan.papers)
    stale += outlived_pages(plan.results, plan.papers)
    for path in stale:
        path.unlink()
    return stale


def _print_drawn(plan: Plan, drawn: Sequence[Path], stale: Sequence[Path]) -> None:
    """Print what was drawn, and the first of what was removed."""
    removed = f"; {len(stale)} removed that no finished run gives" if stale else ""
    removed += f", the first {stale[0]}" if stale else ""
    following = where_to_look(
        plan.results, plan.results / "record.md", plan.results / "report.html"
    )
    counts = f"Files: {len(drawn)} drawn{removed} (git status lists what changed)"
    print("\n".join(closing(plan, plan.covered(), [counts, *following])))
