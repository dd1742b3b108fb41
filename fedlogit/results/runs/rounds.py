"""The table ``rounds.csv`` of a run, a row per round, and the numbers that its columns may have."""

from __future__ import annotations

import csv
import io
import re
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from fedlogit.errors import DataError
from fedlogit.files import read_text
from fedlogit.runs.hints import rerun_hint
from fedlogit.runs.recorded_values import is_printed

__all__ = ["read_rounds"]

_ALWAYS = frozenset({"bytes_up", "bytes_down", "seconds"})
"""What each round has; all other columns may have rounds without a number."""
# Columns that the library writes for all methods, and the most that they can be. All others may be
# of somebody's own method, and are taken as they are.
_BOUNDS = (
    (re.compile(r"(?:balanced_|personalized_)?accuracy(?:_std|_min|_max|_present)?|ece"), 1.0),
    (re.compile(r"bytes_(?:up|down)(?:\..*)?"), 2.0**63),
    (re.compile(r"seconds(?:_.*)?"), 1e10),
)


@lru_cache(maxsize=1 << 10)  # thousands of runs have the same columns
def _bound(name: str) -> float | None:
    """Return the most that a number in a column can be; None of a column that may be anybody's."""
    return next((most for pattern, most in _BOUNDS if pattern.fullmatch(name)), None)


def read_rounds(path: Path) -> pd.DataFrame:
    """Read ``rounds.csv``, whose rounds must count up from 1.

    Raises:
        DataError: if it cannot be read or is cut off, has a column twice or one of text, or a
            number that no run writes: a share above 1, an infinite number of seconds.
    """
    text = read_text(path)
    _check_header(path, text)
    try:
        rounds = pd.read_csv(io.StringIO(text))
    except ValueError as error:
        raise DataError(f"{path} is not a valid table: {error}") from None
    if not text.endswith("\n"):
        raise DataError(f"{path} is truncated: its last line has no end; {rerun_hint(path.parent)}")
    if rounds.empty:  # diverged in round 1
        return rounds
    if "round" not in rounds or list(rounds["round"]) != list(range(1, len(rounds) + 1)):
        raise DataError(f"{path}: column 'round' must count 1, 2, 3, …")
    _check_kinds(path, rounds)
    for name in map(str, rounds):
        if (most := _bound(name)) is not None:
            _check_column(path, name, rounds[name].to_numpy(), most)
    return rounds


def _check_header(path: Path, text: str) -> None:
    """Refuse a column that is there twice, which pandas would give another name."""
    names = next(csv.reader([text.partition("\n")[0]]), [])
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: column {twice[:100]!r} is there twice, should be there once")
    odd = next((name for name in names if not is_printed(name)), None)
    if odd is not None:
        raise DataError(f"{path}: column {odd[:100]!r} should have a name of printable letters")


def _check_kinds(path: Path, rounds: pd.DataFrame) -> None:
    """Refuse text; a column of True and False would count as numbers, too."""
    for name, kind in rounds.dtypes.items():
        if kind.kind not in "fiu":
            raise DataError(f"{path}: column {str(name)[:100]!r} has text, and should have numbers")


def _check_column(path: Path, name: str, values: np.ndarray, most: float) -> None:
    """Refuse numbers that the column of a run never has."""
    bad = ~((values >= 0) & (values <= most))
    if name not in _ALWAYS:
        bad &= ~np.isnan(values)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{path}: column {name[:100]!r} has {values[row]:g} in round {row + 1}, should have"
            f" numbers from 0 to {most:g}"
        )
