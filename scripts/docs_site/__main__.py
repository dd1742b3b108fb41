"""Write the pages of the documentation site into a folder, which MkDocs then builds.

    python -m scripts.docs_site --out .docs

All is made from what is in this checkout; the folder is emptied first.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fedlogit.cli import run_main
from fedlogit.errors import FedlogitError
from fedlogit.papers import list_papers, load_paper
from scripts.docs_site.reference import reference_pages
from scripts.docs_site.results_pages import gallery_pages, record_page
from scripts.docs_site.staging import Stage

_ASSETS = Path(__file__).with_name("assets")
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
    stage = Stage(Path(), args.out)
    papers = {name: load_paper(name, Path("workflow/papers")) for name in _papers()}
    made = [*reference_pages(), *gallery_pages(papers, Path("results/figures"))]
    record = pd.read_csv("results/record.csv", keep_default_na=False, na_values={})
    made.append(("record-table.md", record_page(_numbers(record), papers)))
    for place, text in made:
        stage.page(place, text, "made")
    documents = sorted(path.as_posix() for path in Path("docs").rglob("*.md"))
    for page in (*documents, "CHANGELOG.md", "config/README.md"):
        stage.add(page)
    shutil.copytree(_ASSETS, args.out / "assets", dirs_exist_ok=True)
    return 0


def _papers() -> list[str]:
    return list_papers(Path("workflow/papers"))


def _numbers(record: pd.DataFrame) -> pd.DataFrame:
    """Return the record with numbers where there are some, and "" for texts that are not there."""
    numeric = ["published", "published_std", "ours", "std", "difference", "low", "high"]
    return record.assign(**{key: pd.to_numeric(record[key]) for key in numeric})


def _emptied(folder: Path) -> None:
    """Make an empty folder; one that this did not make is left alone."""
    if folder.exists() and not (folder / _MARK).exists():
        raise FedlogitError(f"{folder} exists and is not of this command; give another --out")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()


if __name__ == "__main__":
    run_main(main)
