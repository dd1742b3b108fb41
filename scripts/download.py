"""Get a data set's raw files: python scripts/download.py mnist --out data/raw/mnist [--mirror DIR].

The sources of data/sources.yaml are tried in order; ``source.json`` beside the files says which
one served. A complete folder is left as it is.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.data.cards import card
from fedlogit.data.download import download


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mirror = os.environ.get("FEDLOGIT_MIRROR") or None
    parser.add_argument("dataset", help="a name from data/sources.yaml")
    parser.add_argument("--out", type=Path, help="the raw folder (default data/raw/DATASET)")
    parser.add_argument(
        "--mirror",
        type=Path,
        default=mirror and Path(mirror),
        help="a folder that holds data sets, the last source (default: FEDLOGIT_MIRROR)",
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    args = parse(argv)
    out = args.out or Path("data/raw") / args.dataset
    mark = download(args.dataset, out, args.mirror)
    said = [f"{args.dataset} from {mark.source}", card(args.dataset).unpinned]
    print(f"{out}: {', '.join(filter(None, said))}")
    return 0


if __name__ == "__main__":
    run_main(main)
