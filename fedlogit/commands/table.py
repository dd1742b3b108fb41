"""Write a table from finished runs: OUT.csv (all digits), OUT.md and OUT.tex.

python -m fedlogit table --artefact table1.json --out results/tables/who_to_trust/paper/table1
"""

from __future__ import annotations

import argparse

from fedlogit.commands._values import given_file, given_path
from fedlogit.papers.artefact import read_artefact
from fedlogit.results.tables import write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--artefact",
        type=given_path,
        required=True,
        help="description of the table (JSON), from results/plan",
    )
    parser.add_argument(
        "--out", type=given_file, required=True, help="path to write to, without suffix"
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    for path in write_table(read_artefact(args.artefact), args.out):
        print(path)
