"""List which published runs are here and which are missing; fail if one is damaged.

python -m fedlogit cached
"""

from __future__ import annotations

import argparse

from fedlogit.commands._cache import nonempty_listing, print_cache_state
from fedlogit.commands._folders import runs_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    runs_folder(parser)


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    outs = nonempty_listing(args.runs.with_suffix(".dvc"))
    return print_cache_state(args.runs, outs, {}, outs)
