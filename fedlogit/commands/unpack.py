"""Unpack archives of train_many, whose runs are filed as if trained here, or of bundle.

    python -m fedlogit unpack results.tar.gz
    python -m fedlogit unpack bundle/*.tar.gz --out bundle

Everything is checked before it is filed: digests, names, sizes, and that each run's folder is
named by its spec. A run that is here stays; if it has another outcome, that is an error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fedlogit.commands._many.archive import kind_of, unpack
from fedlogit.commands._many.filing import Filed, file_runs
from fedlogit.commands._many.inputs import file_inputs
from fedlogit.errors import FedlogitError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("archives", nargs="+", type=Path, metavar="FILE", help="a .tar.gz")
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="their folder")
    parser.add_argument(
        "--out", type=Path, default=Path("bundle"), help="folder for specs, data and partitions"
    )


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    code = 0
    for path in args.archives:
        filed = _unpack(path, args.runs, args.out)
        for name, reason in filed.refused.items():
            print(f"error: refused {name}: {reason}", file=sys.stderr)
        code = 2 if filed.refused else code
    return code


def _unpack(path: Path, runs: Path, inputs: Path) -> Filed:
    """Unpack one archive beside where its files belong, and file them."""
    of_runs = kind_of(path) == "runs"
    target = (runs if of_runs else inputs).resolve()
    with TemporaryDirectory(prefix=".unpack-", dir=_made(target.parent)) as folder:
        names = list(unpack(path, Path(folder)).files)
        filed = (file_runs if of_runs else file_inputs)(Path(folder), names, target)
    what = "runs" if of_runs else "files"
    print(
        f"{path}: {len(filed.new)} {what} filed in {runs if of_runs else inputs},"
        f" {len(filed.there)} were there, {len(filed.refused)} refused"
    )
    return filed


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FedlogitError(f"cannot write {folder}: {error.strerror}") from None
    return folder
