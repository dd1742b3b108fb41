"""Write the pages of the documentation site into a folder, which MkDocs then builds.

    python -m scripts.docs_site --out .docs

All is made from what is in this checkout; the folder is emptied first.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from fedlogit.cli import run_main
from fedlogit.errors import FedlogitError
from fedlogit.papers import list_papers, load_paper
from fedlogit.results.record.numbers import read_record
from scripts.docs_site.reference import reference_pages
from scripts.docs_site.results_pages import gallery_pages, record_page
from scripts.docs_site.staging import Stage

_ASSETS = Path(__file__).with_name("assets")
_PAPERS = Path("workflow/papers")
_MARK = ".made-by-docs-site"


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        "python -m scripts.docs_site",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path(".docs"), help="the folder")
    args = parser.parse_args(argv)
    _emptied(args.out)
    papers = {name: load_paper(name, _PAPERS) for name in list_papers(_PAPERS)}
    stage = Stage(Path(), args.out, {name: paper.short_name for name, paper in papers.items()})
    made = [*reference_pages(), *gallery_pages(papers, Path("results/figures"))]
    record = record_page(read_record(Path("results")), papers, Path("results/tables"))
    made.append(("record-table.md", record))
    for place, text in made:
        stage.page(place, text, "made")
    documents = sorted(path.as_posix() for path in Path("docs").rglob("*.md"))
    for page in (*documents, "CHANGELOG.md", "CONTRIBUTING.md", "config/README.md"):
        stage.add(page)
    shutil.copytree(_ASSETS, args.out / "assets", dirs_exist_ok=True)
    return 0


def _emptied(folder: Path) -> None:
    """Make an empty folder; one that this did not make is left alone."""
    if folder.exists() and not (folder / _MARK).exists():
        raise FedlogitError(f"{folder} exists and is not of this command; give another --out")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()


if __name__ == "__main__":
    run_main(main)
