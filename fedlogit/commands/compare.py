r"""Compare a paper's published numbers with ours and test its claims.

Writes compare.csv, compare.md, orders.csv, claims.csv, claims.md, metrics.json, numbers.json and
summary.md into OUT, and prints summary.md.

    python -m fedlogit compare --artefacts results/plan/who_to_trust/paper/*.json \
        --reference workflow/reference/who_to_trust.csv --out results/summary/who_to_trust/paper
"""

from __future__ import annotations

import argparse

from fedlogit.commands._folders import papers_folder
from fedlogit.commands._values import given_path
from fedlogit.errors import FedlogitError
from fedlogit.papers import load_paper
from fedlogit.papers.plan_reader import read_plans
from fedlogit.papers.published import check_places
from fedlogit.results.summary import write_summary
from fedlogit.results.verdicts.published import nothing_published, read_reference


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--artefacts", type=given_path, nargs="+", required=True, help="tables (JSON)"
    )
    parser.add_argument(
        "--reference", type=given_path, help="published numbers (CSV), if there are any"
    )
    papers_folder(parser)
    parser.add_argument("--out", type=given_path, required=True, help="folder to write to")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    artefacts = read_plans(args.artefacts, args.papers)
    kinds = sorted({(artefact.paper, artefact.scale) for artefact in artefacts})
    if len(kinds) > 1:
        raise FedlogitError(f"--artefacts: one paper at one scale, not {kinds}")
    if args.reference and (args.papers / f"{artefacts[0].paper}.yaml").exists():
        check_places(args.reference, load_paper(artefacts[0].paper, args.papers))
    reference = read_reference(args.reference) if args.reference else nothing_published()
    *_, summary = write_summary(artefacts, reference, args.out)
    print(summary.read_text(encoding="utf-8").rstrip("\n"))
