"""Draw a figure from finished runs: OUT.png and OUT.pdf.

python scripts/figure.py --artefact figure1.json --reference workflow/reference/who_to_trust.csv \
        --out results/figures/who_to_trust/paper/figure1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.results.artefact import read_artefact
from fedlogit.results.compare import read_reference
from fedlogit.results.figures import write_figure


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--artefact", type=Path, required=True, help="what the figure shows, as JSON"
    )
    parser.add_argument("--reference", type=Path, help="published numbers, drawn beside ours")
    parser.add_argument("--out", type=Path, required=True, help="where to; any suffix is replaced")
    args = parser.parse_args(argv)
    reference = read_reference(args.reference) if args.reference else None
    for path in write_figure(read_artefact(args.artefact), args.out, reference):
        print(path)
    return 0


if __name__ == "__main__":
    run_main(main)
