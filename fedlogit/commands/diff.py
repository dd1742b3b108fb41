"""Compare runs with the same runs in another folder, such as published ones trained again.

    python -m fedlogit train_many --paper celm --scale quick --artefacts table1 --results trial
    python -m fedlogit diff results/runs trial/runs

Each line is a run that has ended in both folders: the metric of both, how many of the first rounds
are equal to the last bit, and whether bytes and data are the same. On the machine and with the code
that made a run, all rounds are equal; elsewhere, rounding differs. Exit code 1: data differ.
"""

from __future__ import annotations

import argparse

from fedlogit.commands._values import given_file, given_path
from fedlogit.papers.metric_names import check_round
from fedlogit.results.formatting import write_csv
from fedlogit.results.run_pairs import counts, differences, pairs, table
from fedlogit.results.runs.gathered import samples_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("first", type=given_path, help="folder of runs, such as results/runs")
    parser.add_argument("second", type=given_path, help="folder of runs to compare with them")
    parser.add_argument(
        "--metric", default="accuracy", help="a metric, such as balanced_accuracy or bytes_sent"
    )
    parser.add_argument(
        "--csv",
        type=given_file,
        metavar="FILE",
        help="write the lines, with device, engine and code",
    )


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return 1 if runs of one spec had other data."""
    check_round("--metric", args.metric)
    runs = pairs(args.first, args.second)
    found = differences(runs, args.metric)
    samples = samples_of(pair.one.spec for pair in runs)
    print(f"{table(found, args.metric, samples)}\n")
    print(counts(found, args.metric, samples))
    if args.csv:
        print(write_csv(args.csv, found))
    return 0 if found["same_data"].all() else 1
