"""Blocks of README and docs that are made from generated files, so that no number is typed.

A page says itself what a block is made of, as paths from the repository's root::

    <!-- made from results/figures/celm/paper/curves.png results/tables/celm/paper/table1.md -->
    whatever these files say
    <!-- end -->
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from fedlogit.errors import DataError, FedlogitError

__all__ = ["filled_page"]

_HEADING = re.compile("^(#+ )", re.MULTILINE)  # one level deeper, below the page's own
_TITLE = re.compile(r"\*\*(.+)\*\*\n")  # what a table or figure begins with
_BEGIN, _END = re.compile(r"<!-- made from (.+?) -->"), "<!-- end -->"


def filled_page(page: Path, root: Path) -> str:
    """Return the text of a page with each block made anew: Markdown as it is, pictures as links.

    A figure, which has a Markdown file of its name beside it, has its title above and its caption
    below. The alternative text of any other picture is the page's own and stays. Titles that would
    be the same in a block have their scale behind them.

    Args:
        page: A Markdown file with one block or more.
        root: What the paths in the blocks start from.

    Raises:
        DataError: if the page, or a file that a block names, does not exist.
        FedlogitError: if the page has no block, a block has no end, or a file is of another kind.
    """
    if not page.is_file():
        raise DataError(f"{page} does not exist")
    before, *blocks = _BEGIN.split(page.read_text(encoding="utf-8"))
    if not blocks:
        raise FedlogitError(f"{page}: no block; one begins with <!-- made from FILE … -->")
    text = before
    for names, content in zip(blocks[::2], blocks[1::2], strict=True):
        _, end, after = content.partition(_END)
        if not end:
            raise FedlogitError(f"{page}: the block made from {names} has no {_END}")
        paths = [root / name for name in names.split()]
        parts = _told_apart(paths, [_block_text(path, page, content) for path in paths])
        block = "\n\n".join(parts)
        text += f"<!-- made from {names} -->\n{block}\n{_END}{after}"
    return text


def _told_apart(paths: Sequence[Path], texts: Sequence[str]) -> list[str]:
    """Return texts of a block; where titles are the same, each has the scale of its file."""
    titles = [found[1] if (found := _TITLE.match(text)) else "" for text in texts]
    return [
        _with_scale(text, title, path.parent.name) if title and titles.count(title) > 1 else text
        for path, title, text in zip(paths, titles, texts, strict=True)
    ]


def _with_scale(text: str, title: str, scale: str) -> str:
    longer = f"{title}, scale `{scale}`"
    return text.replace(f"**{title}**", f"**{longer}**", 1).replace(
        f"![{title}]", f"![{longer}]", 1
    )


def _block_text(path: Path, page: Path, old: str) -> str:
    if not path.is_file():
        raise DataError(f"{page}: {path} does not exist; make it first")
    if path.suffix == ".md":
        return _HEADING.sub(r"#\1", path.read_text(encoding="utf-8").strip())
    if path.suffix == ".png":
        link = Path(os.path.relpath(path, page.parent)).as_posix()
        return _with_caption(path, link, old)
    raise FedlogitError(f"{page}: {path.name} is neither .md nor .png")


def _with_caption(path: Path, link: str, old: str) -> str:
    """Return a picture; a figure as its own page shows it, with the link from another one."""
    own, target = path.with_suffix(".md"), f"]({path.name})"
    text = own.read_text(encoding="utf-8").strip() if own.is_file() else ""
    if text.count(target) == 1:
        return text.replace(target, f"]({link})")
    kept = re.search(rf"!\[([^\]]+)\]\({re.escape(link)}\)", old)
    return f"![{kept[1] if kept else path.stem}]({link})"
