"""Write the record: each published number, ours, and the verdict or why there is none.

    python -m fedlogit record

Reads the comparisons that `compare` or `redraw` wrote. For each number it uses the comparison at
the paper's scale, or else one at a reduced scale. It refuses comparisons of runs that the papers'
files no longer plan, or that are neither here nor published. Writes record.csv, record.md,
record.png, record.pdf, record.orders.csv (pairs of methods), record.papers.md (counts by paper) and
record.counts.md into RESULTS, and prints the last.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._cache import read_listing
from fedlogit.commands._settings import folder_options, of_finished_runs, refuse_missing
from fedlogit.errors import DataError
from fedlogit.papers import Plan
from fedlogit.results.record.files import write_record
from fedlogit.results.record.stale import refuse_stale


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    folder_options(parser)
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="also accept comparisons of runs with these seeds"
    )
    parser.add_argument(
        "--precision",
        choices=("f32", "bf16"),
        help="also accept comparisons of runs with this precision",
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    settings = of_finished_runs(args.papers)
    refuse_missing(args.results)
    _refuse_no_references(args.references)
    plan = Plan(settings, args.papers, args.results)
    published = read_listing(plan.layout.listing)
    refuse_stale(_plans(plan, args), args.results, published.keys())
    if write_record(plan, args.references, args.results):
        print((args.results / "record.counts.md").read_text(encoding="utf-8").rstrip())
    else:
        print(f"no record was written: {args.references} has numbers of no paper in {args.papers}")


def _refuse_no_references(folder: Path) -> None:
    """Refuse a folder of published numbers that is not there.

    Raises:
        DataError: naming the folder.
    """
    if not folder.is_dir():
        raise DataError(f"--references {folder} is no folder; give the one that has PAPER.csv")


def _plans(plan: Plan, args: argparse.Namespace) -> list[Plan]:
    """Return the papers' own plan and, if there are settings of the user's, that with them."""
    given = {"seeds": args.seeds, "precision": args.precision}
    if not any(given.values()):
        return [plan]
    own = of_finished_runs(args.papers, **given)
    return [plan, Plan(own, args.papers, args.results)]
