"""Write an HTML page with a paper's tables, figures, claims and provenance.

python -m fedlogit page --artefacts results/plan/celm/paper/*.json --out celm.html
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._options import given_file
from fedlogit.papers.artefact import read_artefacts
from fedlogit.results.pages.chapter import write_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--artefacts", type=Path, nargs="+", required=True, help="tables and figures (JSON)"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of results")
    parser.add_argument("--out", type=given_file, required=True, help="HTML file to write")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    print(write_page(read_artefacts(args.artefacts), args.results, args.out))
