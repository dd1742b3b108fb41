"""Write the record: every published number, ours beside it, the verdict, or why there is none.

    python -m fedlogit record

Needs what `compare` or `redraw` wrote: of every comparison that is there it takes, for each number,
the one at the paper's scale, else one at a reduced scale. Writes record.csv, record.md, the picture
record.png and record.pdf, and record.counts.md into RESULTS; prints the last.
"""

from __future__ import annotations

import argparse

from fedlogit.commands._settings import folder_options, of_finished_runs, refuse_missing
from fedlogit.papers import Plan
from fedlogit.results.record.files import write_record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    folder_options(parser)


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    settings = of_finished_runs(args.papers)
    refuse_missing(args.results)
    plan = Plan(settings, args.papers, args.results)
    write_record(plan, args.references, args.results)
    print((args.results / "record.counts.md").read_text(encoding="utf-8").rstrip())
