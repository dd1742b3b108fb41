"""Blocks of the README that are made from generated files, so that no number is typed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fedlogit.errors import DataError, FedlogitError

__all__ = ["results_block", "with_block"]


def results_block(files: Sequence[Path], readme: Path) -> str:
    """Return the text between the markers: Markdown as it is, pictures as links.

    Args:
        files: Generated ``.md`` and ``.png`` files, in order.
        readme: The file that will hold the block; links are relative to it.

    Raises:
        DataError: if a file is missing.
        FedlogitError: if a file is of another kind.
    """
    return "\n\n".join(_piece(path, readme.parent) for path in files)


def _piece(path: Path, root: Path) -> str:
    if not path.is_file():
        raise DataError(f"{path} does not exist; make it first")
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8").strip()
    if path.suffix == ".png":
        link = Path(os.path.relpath(path, root)).as_posix()
        return f"![{path.stem}]({link})"
    raise FedlogitError(f"{path}: a results block is made of .md and .png files")


def with_block(text: str, block: str, name: str = "results") -> str:
    """Return `text` with what lies between the markers of block `name` replaced.

    Raises:
        FedlogitError: unless each marker is there once, in order.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise FedlogitError(f"the README must have {begin} and then {end}, each once")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{block}\n{end}{rest.split(end)[1]}"
