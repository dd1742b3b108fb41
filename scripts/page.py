"""Put a paper's tables, figures, claims and their provenance on one page of HTML.

python scripts/page.py --artefacts results/plan/celm/paper/*.json --out celm.html
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.results.artefact import read_artefact
from fedlogit.results.page import write_page


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--artefacts", type=Path, nargs="+", required=True, help="tables and figures, as JSON"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="where they lie")
    parser.add_argument("--out", type=Path, required=True, help="the page")
    args = parser.parse_args(argv)
    print(write_page([read_artefact(path) for path in args.artefacts], args.results, args.out))
    return 0


if __name__ == "__main__":
    run_main(main)
