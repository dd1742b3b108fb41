"""Numbers and tables as people read them, and files they are written to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.files import write_atomic
from fedlogit.papers.metric_names import is_counted
from fedlogit.results.metrics import Metric, metric_of

__all__ = [
    "in_words",
    "markdown",
    "number",
    "occurrences",
    "read_csv",
    "sentence",
    "spread",
    "write_csv",
    "write_text",
]

_DIGITS = 4  # as shares between 0.1 and 1 have
_ZEROS = 4


def sentence(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def in_words(parts: Sequence[str]) -> str:
    """Return parts as a list in a sentence."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def occurrences(values: pd.Series, among: Iterable[str]) -> dict[str, int]:
    """Return how often each of some values occurs, in their order."""
    found = values.value_counts()
    return {str(value): int(found.get(value, 0)) for value in among}


def number(value: float, metric: str, *, percent: bool = False, decimals: int | None = None) -> str:
    """Return a value of a metric: shares with 4 decimals (2 in per cent), bytes grouped.

    Of a payload below the last decimal two digits are shown, not zeros. A column that a method logs
    has 4 significant digits, or none after the point where it is a whole number.
    """
    if math.isnan(value):
        return "–"
    known = metric_of(metric)
    form = _form([value], known, percent) if decimals is None else f",.{decimals}f"
    return _formatted(value, known, percent, form)


def spread(
    mean: float, std: float, metric: str, *, percent: bool = False, decimals: int | None = None
) -> str:
    """Return ``mean ± std``; without one (n=1), or of bytes that are always the same, the mean."""
    if math.isnan(mean) or math.isnan(std) or (std == 0 and is_counted(metric)):
        return number(mean, metric, percent=percent, decimals=decimals)
    known = metric_of(metric)
    form = _form([mean, std], known, percent) if decimals is None else f",.{decimals}f"
    return " ± ".join(_formatted(value, known, percent, form) for value in (mean, std))


def _formatted(value: float, metric: Metric, percent: bool, form: str) -> str:
    return format(100 * value if percent and metric.unit == "share" else value, form)


def _form(values: Sequence[float], metric: Metric, percent: bool) -> str:
    """Return how Python formats a value, and what is printed beside it, such as its spread."""
    places = metric.places(percent)
    if places is None:
        return _significant(values)
    if metric.unit in ("MB", "GB") and values[0]:
        places = max(places, 1 - math.floor(math.log10(abs(values[0]))))
    return f",.{places}f"


def _significant(values: Sequence[float]) -> str:
    """Return the format in which the largest of some values has `_DIGITS` significant digits.

    Whole numbers, such as counts of clients, have no digits after the point, unless one of the
    values is none. What would begin with more than `_ZEROS` zeros has an exponent.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if all(not math.isfinite(value) or value.is_integer() for value in map(float, values)):
        return ",.0f"
    exponent = math.floor(math.log10(largest))
    if exponent < -_ZEROS:
        return f".{_DIGITS - 1}e"
    return f",.{max(0, _DIGITS - 1 - exponent)}f"


def markdown(frame: pd.DataFrame, style: str = "pipe", right: Iterable[str] = ()) -> str:
    """Return a frame of strings as a table; `style` is one of tabulate's formats.

    In Markdown, a bar in a cell is escaped, unless it is already.
    """
    if style == "pipe":
        frame = frame.map(_one_cell).rename(columns=_one_cell)
        right = map(_one_cell, right)
    right = set(right)
    align = ["right" if column in right else "left" for column in frame.columns]
    return frame.to_markdown(index=False, tablefmt=style, disable_numparse=True, colalign=align)


def _one_cell(text: Any) -> Any:
    """Return a text whose bars and line breaks end no cell of a table."""
    if not isinstance(text, str):
        return text
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.splitlines()))


def write_text(path: Path, text: str) -> Path:
    """Write text that ends in one newline, atomically; return the path.

    Raises:
        FedlogitError: if it cannot be written.
    """
    with write_atomic(path) as temporary:
        temporary.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return path


def read_csv(
    path: Path, columns: Iterable[str], kinds: Any, hint: str = "run make redraw"
) -> pd.DataFrame:
    """Return a table that `write_csv` wrote, exactly as it was written.

    Args:
        path: The file.
        columns: What it must have.
        kinds: The types of columns that must have one, or one of all.
        hint: What to do if it cannot be read, for the message.

    Raises:
        DataError: if it is missing, no table, or lacks a column.
    """
    try:
        rows = pd.read_csv(path, dtype=kinds)
        if lacking := [column for column in columns if column not in rows]:
            raise ValueError(f"column {lacking[0]!r} is missing")
    except (OSError, ValueError) as error:  # ValueError: also what is empty, or no table
        # Of an OSError without its path, which the message has.
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise DataError(f"cannot read {path}: {reason}; {hint}") from None
    return rows


def write_csv(path: Path, frame: pd.DataFrame) -> Path:
    """Write a frame at full precision, atomically; return the path.

    Raises:
        FedlogitError: if it cannot be written.
    """
    with write_atomic(path) as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n")
    return path
