"""One report of all that was made: every page of `results/report`, with one table of contents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup

from fedlogit.errors import DataError
from fedlogit.files import read_text
from fedlogit.papers.schema import JUDGED_SCALE, Paper
from fedlogit.results.formatting import markdown, write_text
from fedlogit.results.pages.chapter import embedded, shell, to_html

__all__ = ["find_pages", "outlived_pages", "write_report"]

_REMEDY = "remove it and make figures"
_CHAPTER = re.compile(r"<section .*?</section>", re.DOTALL)
_FACT = re.compile(r'<li data-fact="(\w+)"><b>.*?</b>(.*?)</li>')
_TITLE = re.compile(r'<h2 id="([^"]+)">(.*?) <small>')


class _Page(NamedTuple):
    """A chapter of the report, and where it was."""

    path: Path
    html: str


def find_pages(results: Path) -> list[Path]:
    """Return the pages there are, each paper's together, the scale `paper` first."""
    pages = results.glob("report/*/[!.]*.html")
    return sorted(pages, key=lambda page: (page.parent.name, page.stem != JUDGED_SCALE, page.stem))


def outlived_pages(results: Path, papers: Mapping[str, Paper]) -> list[Path]:
    """Return the pages of these papers at scales that they no longer have."""
    own = [page for page in find_pages(results) if page.parent.name in papers]
    return [page for page in own if page.stem not in papers[page.parent.name].scales]


def write_report(pages: Sequence[Path], results: Path, out: Path) -> Path:
    """Write the report; it holds its pictures and needs no other file.

    Args:
        pages: The pages of papers at their scales, as `fedlogit.results.pages.chapter` writes them.
        results: The folder with the picture of the record, which a study may lack.
        out: Where to.

    Raises:
        DataError: if there is no page, or one is damaged.
    """
    if not pages:
        raise DataError(f"{results / 'report'} has no page; make reproduce or make figures first")
    chapters = [_read_page(page) for page in pages]
    opening = Markup("{}{}").format(_overview(chapters), _record(results))
    text = shell("Results", opening, [Markup(chapter.html) for chapter in chapters])  # noqa: S704
    return write_text(out, text)


def _read_page(path: Path) -> _Page:
    found = _CHAPTER.search(read_text(path, _REMEDY))
    if found is None:
        raise DataError(f"{path} is not a page of `fedlogit page`; remove it")
    return _Page(path, found[0])


def _overview(chapters: Sequence[_Page]) -> Markup:
    """Return a row per chapter: its title, scale, runs, and time."""
    rows = []
    for chapter in chapters:
        title = _TITLE.search(chapter.html)
        facts = dict(_FACT.findall(chapter.html))
        if title is None or "runs" not in facts:
            raise DataError(f"{chapter.path} is not a page of `fedlogit page`; remove it")
        rows.append(
            {
                "Paper": f"[{Markup(title[2]).unescape()}](#{title[1]})",  # noqa: S704
                "Scale": chapter.path.stem,
                "Runs": facts["runs"],
                "Training": facts["training"],
                "Published numbers": facts.get("numbers", "–"),
            }
        )
    right = ("Runs", "Training")
    return Markup('<div class="scroll">{}</div>').format(
        to_html(markdown(pd.DataFrame(rows), right=right))
    )


def _record(results: Path) -> Markup:
    """Return the picture of all published numbers with its counts, where there is one."""
    picture, counts = results / "record.png", results / "record.counts.md"
    if not (picture.exists() and counts.exists()):
        return Markup("")
    text = to_html(read_text(counts, _REMEDY))
    return Markup(
        '<h2 id="record">Every published number</h2>{}<div class="caption">{}</div>'
    ).format(embedded(picture, "Published numbers and ours, by verdict"), text)
