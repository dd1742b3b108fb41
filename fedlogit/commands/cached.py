"""List which published runs are here and which are missing; fail if one is damaged.

python -m fedlogit cached
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._cache import nonempty_listing, print_cache_state


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="folder of runs")


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    outs = nonempty_listing(args.runs.with_suffix(".dvc"))
    return print_cache_state(args.runs, outs, {}, outs)
