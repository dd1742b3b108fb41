"""Compare finished runs: a table, curves as a picture, rounds as CSV.

    python -m fedlogit runs trial
    python -m fedlogit runs trial results/runs/mnist --curves trial/curves.png --csv trial/all.csv

Each line of the table is a data set, partition and method, with the mean and the standard deviation
over seeds. Other settings in which the runs differ are named with the method. No paper's file is
needed.
"""

from __future__ import annotations

import argparse
import sys

from fedlogit.commands._values import given_file, given_path
from fedlogit.errors import FedlogitError
from fedlogit.papers.metric_names import check_round
from fedlogit.results.figures import write_figure
from fedlogit.results.formatting import write_csv
from fedlogit.results.runs_in_folders import beside_each_other, every_round, find_runs, run_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folders", nargs="+", type=given_path, help="runs or folders of runs")
    parser.add_argument(
        "--metric", default="accuracy", help="a column of rounds.csv, such as balanced_accuracy"
    )
    parser.add_argument(
        "--curves",
        type=given_file,
        metavar="FILE",
        help="write a plot of the metric by round, as PNG and PDF",
    )
    parser.add_argument(
        "--csv", type=given_file, metavar="FILE", help="write all rounds of all runs"
    )


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return 1 if a run is damaged."""
    check_round("--metric", args.metric)
    found = find_runs(args.folders)
    for reason in found.damaged:
        print(f"left out: {reason}", file=sys.stderr)
    if not found.runs:
        raise FedlogitError(f"{args.folders[0]}: none of the runs there has finished")
    artefact = beside_each_other(found.runs, args.metric)
    print(run_table(artefact))
    if found.unfinished:
        print(f"not finished: {', '.join(map(str, found.unfinished))}")
    if args.csv:
        print(write_csv(args.csv, every_round(artefact)))
    if args.curves:
        for path in write_figure(artefact, args.curves):
            print(path)
    return 1 if found.damaged else 0
