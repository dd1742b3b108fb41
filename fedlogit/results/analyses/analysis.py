"""What an analysis gives: all its numbers, the table that people read, and what is said of both."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

__all__ = ["Analysis"]


@dataclass(frozen=True)
class Analysis:
    """An analysis of the runs of a table.

    Attributes:
        numbers: For the CSV, at full precision.
        shown: Texts, as printed.
        said: Sentences for the caption, without where the runs come from; each without its stop.
        heads: How many columns say what a row is about; equal ones that follow are printed once.
        right: Columns of numbers, which are aligned at the right.
    """

    numbers: pd.DataFrame
    shown: pd.DataFrame
    said: tuple[str, ...]
    heads: int = 1
    right: tuple[str, ...] = ()
