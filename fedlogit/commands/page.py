"""Write an HTML page with a paper's tables, figures, claims and provenance.

python -m fedlogit page --artefacts results/plan/celm/paper/*.json --out celm.html
"""

from __future__ import annotations

import argparse

from fedlogit.commands._folders import papers_folder, results_folder
from fedlogit.commands._values import given_file, given_path
from fedlogit.papers.plan_reader import read_plans
from fedlogit.results.pages.chapter import write_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--artefacts", type=given_path, nargs="+", required=True, help="tables and figures (JSON)"
    )
    results_folder(parser)
    papers_folder(parser)
    parser.add_argument("--out", type=given_file, required=True, help="HTML file to write")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    print(write_page(read_plans(args.artefacts, args.papers), args.results, args.out))
