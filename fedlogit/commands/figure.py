"""Draw a figure from finished runs: OUT.png, OUT.pdf and the caption OUT.md.

python -m fedlogit figure --artefact figure1.json --out results/figures/who_to_trust/paper/figure1
"""

from __future__ import annotations

import argparse

from fedlogit.commands._values import given_file, given_path
from fedlogit.papers.artefact import read_artefact
from fedlogit.results.figures import write_figure
from fedlogit.results.verdicts.published import read_reference


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--artefact",
        type=given_path,
        required=True,
        help="description of the figure (JSON), from results/plan",
    )
    parser.add_argument(
        "--reference", type=given_path, help="published numbers (CSV) to draw next to ours"
    )
    parser.add_argument(
        "--out", type=given_file, required=True, help="path to write to; a suffix is replaced"
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    reference = read_reference(args.reference) if args.reference else None
    for path in write_figure(read_artefact(args.artefact), args.out, reference):
        print(path)
