"""Write docs/papers/, three more pages of docs/ and dvc.yaml from papers' files and results.

python scripts/papers.py; with --check it only compares.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.papers import list_papers, load_paper
from fedlogit.results.dvc_metrics import dvc_yaml
from fedlogit.results.pages.claims import claims_page
from fedlogit.results.pages.inventory import inventory_page
from fedlogit.results.pages.paper import paper_page
from fedlogit.results.pages.record import record_page
from scripts._generated import checking_parser, write_or_check

_PAPERS, _RESULTS, _DOCS = Path("workflow/papers"), Path("results"), Path("docs")


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = checking_parser(__doc__)
    parser.add_argument("--dvc", type=Path, default=Path("dvc.yaml"), help="DVC's file")
    args = parser.parse_args(argv)
    papers = [load_paper(name, _PAPERS) for name in list_papers(_PAPERS)]
    texts = {_DOCS / "papers" / f"{p.paper}.md": paper_page(p, _RESULTS) for p in papers}
    texts[_DOCS / "claims.md"] = claims_page(papers, _RESULTS)
    texts[_DOCS / "record.md"] = record_page(papers, _RESULTS, Path("workflow/reference"))
    texts[_DOCS / "models-and-data.md"] = inventory_page(papers)
    texts[args.dvc] = dvc_yaml(_RESULTS)
    why = "is not what it is made from says; run make papers"
    return write_or_check(texts, why, check=args.check)


if __name__ == "__main__":
    run_main(main)
