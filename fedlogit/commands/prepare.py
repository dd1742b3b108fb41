"""Decode a data set's raw files into arrays.

    python -m fedlogit prepare mnist --raw data/raw/mnist --out data/prepared

Writes ``mnist.npz`` (arrays) and ``mnist.json`` (shapes, counts, digest, licence, source).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit.commands._values import given_path
from fedlogit.data.prepare import lacking_classes, prepare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset", help="name of a data set in data/sources.yaml")
    parser.add_argument(
        "--raw", type=given_path, help="folder of raw files (default: data/raw/DATASET)"
    )
    parser.add_argument(
        "--out", type=given_path, default=Path("data/prepared"), help="folder to write to"
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    raw = args.raw or Path("data/raw") / args.dataset
    about = prepare(args.dataset, raw, args.out)
    if lacking := lacking_classes(about):
        print(f"note: {args.dataset} has {lacking}")
    parts = [about["title"], f"digest {about['digest'][:12]}", about.get("content", "")]
    print(f"{args.out / args.dataset}.npz: {', '.join(filter(None, parts))}")
