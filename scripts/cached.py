"""Say what the cache has, what is here of it, and what it leaves out; fail if a run is damaged.

python scripts/cached.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _cache import read_listing

from fedlogit.cli import run_main
from fedlogit.errors import DataError, FedlogitError
from fedlogit.results.finished import check_run


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="their folder")
    args = parser.parse_args(argv)
    listing = args.runs.with_suffix(".dvc")
    outs = read_listing(listing)
    if not outs:
        raise DataError(f"{listing} lists no run; git checkout it")
    folders = [args.runs / run for run in outs]
    here = [folder for folder in folders if folder.is_dir()]
    damaged = [reason for folder in here if (reason := _damage(args.runs, folder))]
    size = sum(out["size"] for out in outs.values()) / 1e6
    print(f"cache: {len(outs)} finished runs, {size:.1f} MB; here: {len(here)}")
    print(
        "not in it: data sets (a run that is missing fetches its own from the official source),"
        " checkpoints, and runs at scale smoke and quick unless published by name"
    )
    for folder in sorted({*folders} - {*here}):
        print(f"error: {folder} is missing; dvc pull {folder}", file=sys.stderr)
    for reason in damaged:
        print(f"error: {reason}", file=sys.stderr)
    return 2 if damaged or len(here) < len(folders) else 0


def _damage(root: Path, folder: Path) -> str:
    """Return what is wrong with a run, or ""."""
    try:
        check_run(root, folder)
    except FedlogitError as error:
        return f"{error}; rm -r {folder}; dvc pull {folder} has the published one"
    return ""


if __name__ == "__main__":
    run_main(main)
