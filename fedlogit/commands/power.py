"""Tell how many seeds the claims of a paper need, from the finished runs at a scale.

    python -m fedlogit power --paper fedol --scale extended --seeds 20

Each line is a comparison of a claim, or the mean over its cells: the seeds so far, their mean
difference beyond the claim's margin and its standard deviation, the power of the one-sided paired
t test at 5 % with --seeds new seeds, and the seeds needed for a power of 80 %. Both are for the
direction seen: where the difference is negative, they are about the claim's opposite, before Holm's
correction for the number of comparisons, with which "does not hold" needs more seeds. Differences
seen with few seeds are uncertain, and so is all that follows from them. Fix the number of seeds
before the runs, and do not add seeds until a test passes.
"""

from __future__ import annotations

import argparse

import pandas as pd

from fedlogit.commands._settings import of_finished_runs, refuse_missing, results_options
from fedlogit.commands._values import count, given_file
from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers import Plan
from fedlogit.papers.artefact import Artefact
from fedlogit.results.formatting import markdown, write_csv
from fedlogit.results.verdicts.claim_power import claims_power


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    results_options(parser)
    parser.add_argument("--paper", required=True, help="the paper, such as celm")
    parser.add_argument("--scale", required=True, help="the scale whose runs are used")
    parser.add_argument(
        "--seeds", type=count, default=5, help="number of new seeds (default: %(default)s)"
    )
    parser.add_argument("--claims", nargs="+", default=[], metavar="ID", help="only these claims")
    parser.add_argument("--csv", type=given_file, metavar="FILE", help="write the lines")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    if args.seeds < 2:
        raise FedlogitError(f"--seeds {args.seeds}: give 2 or more, as one seed has no spread")
    refuse_missing(args.results)
    found = claims_power(_artefacts(args), args.seeds, args.claims)
    print(_table(found, args.seeds))
    if args.csv:
        print(write_csv(args.csv, found))


def _artefacts(args: argparse.Namespace) -> list[Artefact]:
    plan = Plan(of_finished_runs(args.papers, [args.paper]), args.papers, args.results)
    judged = [a.as_artefact(plan.layout.runs) for a in plan.judged(args.paper, args.scale)]
    known = [key for artefact in judged for key in artefact.claims]
    for claim in args.claims:
        if claim not in known:
            raise unknown(f"claim of {args.paper} at scale {args.scale}", claim, known)
    return judged


def _table(found: pd.DataFrame, seeds: int) -> str:
    shown = pd.DataFrame(
        {
            "claim": found["claim"],
            "comparison": found["comparison"],
            "seeds": found["n"],
            "difference": [_number(value, "{:.4g}") for value in found["difference"]],
            "std": [_number(value, "{:.4g}") for value in found["std"]],
            f"power with {seeds} seeds": [_number(value, "{:.0%}") for value in found["power"]],
            "seeds for 80 %": [_number(value, "{:.0f}") for value in found["seeds_needed"]],
        }
    )
    return markdown(shown, "simple", right=[*shown.columns[2:]])


def _number(value: float, style: str) -> str:
    return "–" if pd.isna(value) else style.format(value)
