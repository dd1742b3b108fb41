"""Decode a data set: python scripts/prepare.py mnist --raw data/raw/mnist --out data/prepared.

Writes ``mnist.npz`` (arrays) and ``mnist.json`` (shapes, counts, digest, licence, source).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.data.prepare import prepare


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", help="a name from data/sources.yaml")
    parser.add_argument("--raw", type=Path, help="the raw folder (default data/raw/DATASET)")
    parser.add_argument("--out", type=Path, default=Path("data/prepared"), help="where to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    args = parse(argv)
    raw = args.raw or Path("data/raw") / args.dataset
    about = prepare(args.dataset, raw, args.out)
    said = [about["title"], f"digest {about['digest'][:12]}", about.get("content", "")]
    print(f"{args.out / args.dataset}.npz: {', '.join(filter(None, said))}")
    return 0


if __name__ == "__main__":
    run_main(main)
