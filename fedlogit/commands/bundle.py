"""Pack specs and prepared data for training on a machine without Snakemake or a network.

    python -m fedlogit bundle --paper celm --scale paper --artefacts table1 --out bundle

Writes bundle/specs.tar.gz, with the specs of all unfinished runs and their partitions, and one
archive per data set. On the other machine, `unpack` unpacks them and `train_many` trains. Code is
not included: modules outside fedlogit that the specs name are listed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from fedlogit.commands._error_lines import print_first
from fedlogit.commands._folders import data_folder
from fedlogit.commands._many.archive import pack
from fedlogit.commands._many.inputs import data_files, modules_of, spec_files
from fedlogit.commands._many.report import states
from fedlogit.commands._many.selection import selected_runs, selection_options
from fedlogit.commands._values import given_path
from fedlogit.errors import unknown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    selection_options(parser)
    data_folder(parser)
    parser.add_argument(
        "--without-data", nargs="*", metavar="NAME",
        help="leave out these data sets, which the other machine has; without a name, all",
    )  # fmt: skip
    parser.add_argument("--out", type=given_path, required=True, help="folder to write to")


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    selected = selected_runs(args)
    if selected.refused:
        errors = [f"error: {where}: {why}" for where, why in selected.refused.items()]
        print_first(errors, args.results / "bundle.errors.txt")
        return 2
    known = states(selected, args.results, {})
    runs = {run: spec for run, spec in selected.runs.items() if known[run] != "finished"}
    if not runs:
        print(f"{_runs_are(len(known))} finished; there is nothing to bundle")
        return 0
    data = data_files(runs.values(), args.data)
    for name in args.without_data or ():
        if name not in data:
            raise unknown("data set of --without-data", name, data)
    with TemporaryDirectory() as folder:
        files = spec_files(runs, args.data, Path(folder))
        pack(args.out / "specs.tar.gz", "inputs", files)
    _print_size(args.out / "specs.tar.gz", "specs and partitions")
    for name in data:
        if args.without_data is None or (args.without_data and name not in args.without_data):
            pack(args.out / f"{name}.tar.gz", "inputs", data[name])
            _print_size(args.out / f"{name}.tar.gz", f"data set {name}")
    if modules := modules_of(runs.values()):
        print(
            f"Not in these archives: {', '.join(modules)}, which the specs name; commit your code"
            " and name its files in git archive (docs/tutorials/on-a-rented-gpu.md)"
        )
    print(f"{_runs_are(len(runs))} ready to travel in {args.out}")
    return 0


def _runs_are(number: int) -> str:
    return "1 run is" if number == 1 else f"{number:,} runs are"


def _print_size(path: Path, what: str) -> None:
    print(f"{path}: {what}, {path.stat().st_size / 1e6:.1f} MB")
