"""Hints at the end of error messages: how a file that cannot be used is made again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedlogit.errors import DataError
from fedlogit.runs import layout

__all__ = ["adding_hint", "remake_hint", "rerun_hint"]


def rerun_hint(folder: Path) -> str:
    """Return what to do about a damaged run: while its result is there, it is not run again."""
    return f"remove {folder} and run it again"


def remake_hint(path: Path) -> str:
    """Return how a file of a stage, or an export of a run, is made again."""
    if path.name == layout.LOGITS_RECORD:
        return f"remove {path} and export the logits again"
    if path.parent.name == layout.EXPORTS:
        return rerun_hint(path.parent.parent)
    folder = path.parent
    if (folder / layout.SPEC).exists() or (folder / layout.CLIENTS).exists():  # made by a command
        return f"remove {folder} and give the same command again"
    return "if it is the file you mean, remove it and let it be made again"


@contextmanager
def adding_hint(hint: str) -> Iterator[None]:
    """Add to the error of a file that cannot be used what to do about it.

    Args:
        hint: What follows the error's message, after a semicolon.

    Raises:
        DataError: for each that is raised within.
    """
    try:
        yield
    except DataError as error:
        raise DataError(f"{error}; {hint}") from None
