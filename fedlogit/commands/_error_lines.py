"""Prints the first of many lines about what is wrong; all of them go into a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from fedlogit.errors import FedlogitError
from fedlogit.files import write_atomic

__all__ = ["print_first", "write_lines"]

_MOST = 5


def print_first(lines: Sequence[str], file: Path) -> None:
    """Print lines to standard error; of more than five, the first ones and where all are."""
    for line in lines[:_MOST]:
        print(line, file=sys.stderr)
    if len(lines) > _MOST:
        try:
            rest = str(write_lines(file, lines))
        except FedlogitError as error:  # as in a checkout that is read-only
            rest = f"{error}; all lines are kept only where it can be written"
        print(f"and {len(lines) - _MOST} more: {rest}", file=sys.stderr)


def write_lines(file: Path, lines: Sequence[str]) -> Path:
    """Write lines into a file, atomically; return its path."""
    with write_atomic(file) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file
