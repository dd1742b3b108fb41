"""Fetch the published runs that are not here, and say which could not be fetched.

    python -m fedlogit pull
    python -m fedlogit pull --remote lab

Runs that are here stay as they are, whoever made them: the same spec gives the same numbers, but
not the same file, as `result.json` says how long training took and where. `dvc pull` alone refuses
to go on where it meets one of those, and fetches none of the others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._cache import is_here, kept, tell
from fedlogit.commands._objects import put_in_place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="their folder")
    parser.add_argument("--remote", help="fetch from this remote of DVC instead of the default")


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    outs = kept(args.runs.with_suffix(".dvc"))
    missing = {run: out["md5"] for run, out in outs.items() if not is_here(args.runs / run)}
    reasons = put_in_place(args.runs, missing, args.remote) if missing else {}
    pulled = missing.keys() - reasons.keys()
    return tell(args.runs, outs, reasons, outs.keys() - pulled)
