"""Combine the existing pages of all papers and scales into one HTML report.

    python -m fedlogit report

The report is a single file that includes its pictures.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._folders import results_folder
from fedlogit.commands._values import given_file
from fedlogit.results.pages.report import find_pages, write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    results_folder(parser)
    parser.add_argument(
        "--out", type=given_file, default=Path("results/report.html"), help="HTML file to write"
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    print(write_report(find_pages(args.results), args.results, args.out))
