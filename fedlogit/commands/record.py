"""Put every published number beside ours, from the comparisons that there are.

Writes OUT.csv, OUT.md, and OUT.png and OUT.pdf, which show all of them at once.

    python -m fedlogit record --out results/record
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.errors import FedlogitError
from fedlogit.papers import list_papers, load_paper
from fedlogit.results.record import write_record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--summaries", type=Path, default=Path("results/summary"), help="folder of comparisons"
    )
    parser.add_argument("--papers", type=Path, default=Path("workflow/papers"))
    parser.add_argument("--references", type=Path, default=Path("workflow/reference"))
    parser.add_argument("--out", type=Path, required=True, help="path without ending")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    papers = {name: load_paper(name, args.papers) for name in list_papers(args.papers)}
    written = write_record(args.summaries, papers, args.references, args.out)
    if not written:
        raise FedlogitError(f"--references {args.references}: no published number of these papers")
    for path in written:
        print(path)
