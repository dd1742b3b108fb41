"""Put the pages of all papers and scales that there are into one report.

    python -m fedlogit report

The report is one file, which needs no other: it holds its pictures.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._options import given_file
from fedlogit.results.pages.report import find_pages, write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--results", type=Path, default=Path("results"), help="where pages lie")
    parser.add_argument(
        "--out", type=given_file, default=Path("results/report.html"), help="the report"
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    print(write_report(find_pages(args.results), args.results, args.out))
