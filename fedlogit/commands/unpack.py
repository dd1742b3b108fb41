"""Unpack archives made by train_many or bundle.

    python -m fedlogit unpack results.tar.gz
    python -m fedlogit unpack bundle/*.tar.gz --out bundle

Runs are stored as if they had been trained here. Everything is checked first: digests, names,
sizes, and that each run's folder is named by its spec. A run that exists here is kept; if its
results differ, that is an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from fedlogit.commands._folders import runs_folder
from fedlogit.commands._many.archive import kind_of, unpack
from fedlogit.commands._many.filing import Filed, file_runs
from fedlogit.commands._many.inputs import file_inputs
from fedlogit.commands._values import given_path
from fedlogit.errors import FedlogitError, writing
from fedlogit.locks import held

_PREFIX = ".unpack-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "archives", nargs="+", type=given_path, metavar="FILE", help="a .tar.gz archive"
    )
    runs_folder(parser)
    parser.add_argument(
        "--out",
        type=given_path,
        default=Path("bundle"),
        help="folder for specs, data and partitions",
    )


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    code = 0
    for path in args.archives:
        filed = _unpack(path, args.runs, args.out)
        for name, reason in filed.refused.items():
            print(f"error: {path}: refused {name}: {reason}", file=sys.stderr)
        code = 2 if filed.refused else code
    return code


def _unpack(path: Path, runs: Path, inputs: Path) -> Filed:
    """Unpack one archive beside where its files belong, and file them."""
    of_runs = kind_of(path) == "runs"
    target = (runs if of_runs else inputs).resolve()
    with _emptied(target.parent) as folder:
        names = list(unpack(path, folder).files)
        try:
            filed = (file_runs if of_runs else file_inputs)(folder, names, target)
        except FedlogitError as error:
            raise FedlogitError(f"{path}: {str(error).replace(f'{folder}/', '')}") from None
    what = "runs" if of_runs else "files"
    print(
        f"{path}: {len(filed.new)} {what} filed in {runs if of_runs else inputs},"
        f" {len(filed.there)} were there, {len(filed.refused)} refused"
    )
    return filed


@contextmanager
def _emptied(parent: Path) -> Iterator[Path]:
    """Yield a new folder in another, without those that killed processes left there."""
    waiting = f"another process unpacks in {parent}; waiting for it to end"
    with held(_made(parent) / ".unpack.lock", waiting):
        for left in parent.glob(f"{_PREFIX}*"):
            rmtree(left, ignore_errors=True)
        with TemporaryDirectory(prefix=_PREFIX, dir=parent) as folder:
            yield Path(folder)


def _made(folder: Path) -> Path:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder
