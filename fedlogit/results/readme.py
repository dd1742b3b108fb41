"""The block of results in the README, made from generated files so that no number is typed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fedlogit.errors import DataError, FedlogitError

__all__ = ["BEGIN", "END", "results_block", "with_block"]

BEGIN = "<!-- results:begin -->"
END = "<!-- results:end -->"


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


def with_block(text: str, block: str) -> str:
    """Return `text` with what lies between the markers replaced.

    Raises:
        FedlogitError: unless each marker is there once, in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise FedlogitError(f"the README must have {BEGIN} and then {END}, each once")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{block}\n{END}{rest.split(END)[1]}"
