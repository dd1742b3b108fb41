"""Write docs/papers/, three more pages of docs/ and dvc.yaml from papers' files and results.

python scripts/papers.py; with --check it only compares.
"""

from __future__ import annotations

import argparse
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
from scripts._generated import write_or_check


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="their folder")
    parser.add_argument("--papers", type=Path, default=Path("workflow/papers"))
    parser.add_argument("--out", type=Path, default=Path("docs/papers"), help="where pages go")
    parser.add_argument("--claims", type=Path, default=Path("docs/claims.md"), help="their page")
    parser.add_argument("--record", type=Path, default=Path("docs/record.md"), help="its page")
    parser.add_argument("--inventory", type=Path, default=Path("docs/models-and-data.md"))
    parser.add_argument("--references", type=Path, default=Path("workflow/reference"))
    parser.add_argument("--dvc", type=Path, default=Path("dvc.yaml"))
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 on a difference"
    )
    args = parser.parse_args(argv)
    papers = [load_paper(name, args.papers) for name in list_papers(args.papers)]
    texts = {args.out / f"{p.paper}.md": paper_page(p, args.results) for p in papers}
    texts[args.claims] = claims_page(papers, args.results)
    texts[args.record] = record_page(papers, args.results, args.references)
    texts[args.inventory] = inventory_page(papers)
    texts[args.dvc] = dvc_yaml(args.results)
    why = "is not what it is made from says; run make papers"
    return write_or_check(texts, why, check=args.check)


if __name__ == "__main__":
    run_main(main)
