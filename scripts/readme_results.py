"""Rewrite the results in the README from generated files; with --check, fail if they differ.

What lies between <!-- results:begin --> and <!-- results:end --> becomes the given files:

    python scripts/readme_results.py results/summary/who_to_trust/quick/compare.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.errors import DataError
from fedlogit.results.formatting import write_text
from fedlogit.results.readme import results_block, with_block


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help=".md and .png files, in order")
    parser.add_argument("--block", default="results", help="name of the block's markers")
    parser.add_argument("--readme", type=Path, default=Path("README.md"))
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 on a difference"
    )
    args = parser.parse_args(argv)
    if not args.readme.is_file():
        raise DataError(f"{args.readme} does not exist")
    old = args.readme.read_text(encoding="utf-8")
    new = with_block(old, results_block(args.files, args.readme), args.block)
    if args.check:
        if old != new:
            print(
                f"{args.readme}: {args.block} differ from {len(args.files)} files", file=sys.stderr
            )
        return int(old != new)
    write_text(args.readme, new)
    return 0


if __name__ == "__main__":
    run_main(main)
