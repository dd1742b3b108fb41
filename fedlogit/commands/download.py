"""Get a data set's raw files.

    python -m fedlogit download mnist --out data/raw/mnist

The sources of data/sources.yaml are tried in order; ``source.json`` beside the files says which
one served. A complete folder is left as it is.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from fedlogit.commands._options import given_path
from fedlogit.data import card
from fedlogit.data.download import download


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    mirror = os.environ.get("FEDLOGIT_MIRROR") or None
    parser.add_argument("dataset", help="a name from data/sources.yaml")
    parser.add_argument("--out", type=given_path, help="the raw folder (default data/raw/DATASET)")
    parser.add_argument(
        "--mirror",
        type=Path,
        default=mirror and Path(mirror),
        help="a folder that holds data sets, the last source (default: FEDLOGIT_MIRROR)",
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    out = args.out or Path("data/raw") / args.dataset
    mark = download(args.dataset, out, args.mirror)
    parts = [f"{args.dataset} from {mark.source}", card(args.dataset).unpinned]
    print(f"{out}: {', '.join(filter(None, parts))}")
