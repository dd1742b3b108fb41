"""Say what the cache has and what is here of it; fail if a run is damaged.

python -m fedlogit cached
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._cache import kept, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="their folder")


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    outs = kept(args.runs.with_suffix(".dvc"))
    return tell(args.runs, outs, {}, outs)
