"""Print every paper beside ours and where tables, figures and the report are.

Also writes results/summary.md. Needs what `compare` wrote.

    python -m fedlogit summary --scale quick who_to_trust
    python -m fedlogit summary --scale paper --datasets mnist -- who_to_trust celm
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.config import Settings
from fedlogit.papers import Plan
from fedlogit.results.formatting import write_text
from fedlogit.results.summary import overview


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("papers", nargs="+", help="which papers")
    parser.add_argument("--scale", required=True, help="at which scale")
    parser.add_argument("--datasets", nargs="*", help="leave out papers without a run on these")
    parser.add_argument("--results", type=Path, default=Path("results"), help="their folder")
    parser.add_argument(
        "--papers-folder", type=Path, default=Path("workflow/papers"), help="for the labels"
    )
    parser.add_argument("--report", type=Path, default=Path("results/report.html"))


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    chosen = {"papers": args.papers, "scale": args.scale, "datasets": args.datasets or None}
    plan = Plan(Settings.load(chosen, "options"), args.papers_folder, args.results)
    labels = {paper: plan.papers[paper].labels for paper in plan.chosen}
    text = overview(args.results, args.scale, labels)
    pages = [args.results / "report" / paper / f"{args.scale}.html" for paper in labels]
    text += f"\n\nEach paper on one page: {', '.join(map(str, pages))}"
    text += f"\n\nReport: {args.report}{'' if args.report.exists() else ' (not made yet)'}"
    print(text)
    print(f"\nThis summary: {write_text(args.results / 'summary.md', text)}")
