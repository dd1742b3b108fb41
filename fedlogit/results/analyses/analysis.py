"""What an analysis gives: its numbers, the table that people read, sentences for the caption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

__all__ = ["Analysis", "sorted_as"]


@dataclass(frozen=True)
class Analysis:
    """An analysis of the runs of a table.

    Attributes:
        numbers: For the CSV, at full precision.
        shown: Texts, as printed.
        sentences: For the caption, without where the runs come from; each without its full stop.
        heads: How many columns say what a row is about; equal ones that follow are printed once.
        right: Columns of numbers, which are aligned at the right.
        more: Further tables below it, by what is printed above each: one head, then numbers.
    """

    numbers: pd.DataFrame
    shown: pd.DataFrame
    sentences: tuple[str, ...]
    heads: int = 1
    right: tuple[str, ...] = ()
    more: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def sorted_as(frame: pd.DataFrame, order: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    """Return rows by these columns, each in the order of its values; equal ones as they were.

    Args:
        frame: Whose columns have no other values than these.
        order: The values of each column; the first column counts most.
    """
    places = {
        name: {value: place for place, value in enumerate(dict.fromkeys(values))}
        for name, values in order.items()
    }
    return frame.sort_values(
        [*order], key=lambda column: column.map(places[str(column.name)]), kind="stable"
    ).reset_index(drop=True)
