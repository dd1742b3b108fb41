"""Download a data set's raw files.

    python -m fedlogit download mnist --out data/raw/mnist

Tries the sources in data/sources.yaml in order, and writes into ``source.json`` which one it used.
A complete folder is left unchanged.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from fedlogit.commands._values import given_path
from fedlogit.data import card
from fedlogit.data.download import download


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    mirror = os.environ.get("FEDLOGIT_MIRROR") or None
    parser.add_argument("dataset", help="name of a data set in data/sources.yaml")
    parser.add_argument(
        "--out", type=given_path, help="folder to write to (default: data/raw/DATASET)"
    )
    parser.add_argument(
        "--mirror",
        type=given_path,
        default=mirror and Path(mirror),
        help="folder of data sets, tried last (default: FEDLOGIT_MIRROR)",
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    out = args.out or Path("data/raw") / args.dataset
    mark = download(args.dataset, out, args.mirror)
    parts = [f"{args.dataset} from {mark.source}", card(args.dataset).unpinned]
    print(f"{out}: {', '.join(filter(None, parts))}")
