"""Say what the cache has, what is here of it, and what it leaves out; fail if a run is damaged.

python scripts/cached.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _cache import kept, tell

from fedlogit.cli import run_main


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="their folder")
    args = parser.parse_args(argv)
    return tell(args.runs, kept(args.runs.with_suffix(".dvc")), {})


if __name__ == "__main__":
    run_main(main)
