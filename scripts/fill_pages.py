"""Write results into README and docs, from the files that each page names; --check changes nothing.

What a block is made of stands in the page (see `fedlogit.results.pages.fill`):

    python scripts/fill_pages.py README.md docs/results.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.results.pages.fill import filled_page
from scripts._generated import checking_parser, write_or_check


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = checking_parser(__doc__)
    parser.add_argument("pages", type=Path, nargs="+", help="Markdown files with blocks")
    args = parser.parse_args(argv)
    texts = {page: filled_page(page, Path.cwd()) for page in args.pages}
    return write_or_check(texts, "differs from the files that it is made from", check=args.check)


if __name__ == "__main__":
    run_main(main)
