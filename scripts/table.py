"""Make a table from finished runs: OUT.csv (all digits), OUT.md and OUT.tex.

python scripts/table.py --artefact table1.json --out results/tables/who_to_trust/paper/table1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.results.artefact import read_artefact
from fedlogit.results.tables import write_table


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--artefact", type=Path, required=True, help="what the table shows, as JSON"
    )
    parser.add_argument("--out", type=Path, required=True, help="where to, without suffix")
    args = parser.parse_args(argv)
    for path in write_table(read_artefact(args.artefact), args.out):
        print(path)
    return 0


if __name__ == "__main__":
    run_main(main)
