"""Verdicts that would be others by another reading of what a paper prints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from fedlogit.papers.published import published_rows
from fedlogit.results.statistics.means import Sample
from fedlogit.results.verdicts.number_rows import RecordedNumber, recorded_numbers
from fedlogit.results.verdicts.rules import VERDICTS, is_exact, margin_unit, verdict

__all__ = ["decided_by_rounding", "divided_by_n"]


_PrintedNumber = Mapping[str, str]
"""A published number's `mean` and `std` in the file's digits, "" where it has none."""

_Readings = Callable[[RecordedNumber, _PrintedNumber], Iterable[Sample]]
"""What else a published number may be, by its row of the record and of the file."""


def decided_by_rounding(rows: pd.DataFrame, references: Path) -> pd.DataFrame:
    """Return the judged numbers whose verdict rounding decides.

    A printed mean or standard deviation may have been up to half a unit of its last digit more or
    less. The column `others` lists the other verdicts, by a comma, that numbers within these ranges
    would get; `printed` has the mean in the file's digits.

    Args:
        rows: The record, with the numbers of each file in the file's order.
        references: The folder of the published numbers, which have the digits that are printed.
    """
    return _numbers_read_otherwise(rows, references, _readings_within_rounding)


def divided_by_n(rows: pd.DataFrame, references: Path) -> pd.DataFrame:
    """Return the judged numbers with another verdict if the paper's ± divides by n, not n - 1.

    Args, columns: as of `decided_by_rounding`.
    """
    return _numbers_read_otherwise(rows, references, _with_wider_spread)


def _numbers_read_otherwise(
    rows: pd.DataFrame, references: Path, readings: _Readings
) -> pd.DataFrame:
    """Return the judged numbers that would have another verdict by other readings of the print."""
    parts = []
    for name, part in rows.groupby("paper", sort=False):
        prints = [row for _, row in published_rows(references / f"{name}.csv")]
        numbers = zip(recorded_numbers(part), prints, strict=True)
        others = [_other_verdicts(row, readings(row, printed)) for row, printed in numbers]
        parts.append(part.assign(printed=[row["mean"] for row in prints], others=others))
    found = pd.concat(parts)
    return found[found["others"] != ""]


def _readings_within_rounding(row: RecordedNumber, printed: _PrintedNumber) -> Iterator[Sample]:
    """Yield the published number with means of the range that is printed so, and ± of its ends."""
    mean, std = (_half_unit(text) for text in (printed["mean"], printed["std"]))
    for up, wider in itertools.product(np.linspace(-1, 1, 21), (-1, 0, 1)):
        spread = float(np.maximum(row["published_std"] + wider * std, 0))  # NaN stays
        yield Sample(row["published"] + up * mean, spread, row["published_n"])


def _with_wider_spread(row: RecordedNumber, _: _PrintedNumber) -> Iterator[Sample]:
    """Yield the published number with a ± that is turned from n to n - 1; NaN stays."""
    n = row["published_n"]
    if n > 1:
        spread = row["published_std"] * math.sqrt(n / (n - 1))
        yield Sample(row["published"], spread, n)


def _half_unit(printed: str) -> float:
    """Return half a unit of a number's last digit: 0.00005 of "0.8064"; 0 of ""."""
    if not printed:
        return 0.0
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def _other_verdicts(row: RecordedNumber, readings: Iterable[Sample]) -> str:
    """Return the other verdicts that readings of a number give, by a comma, or ""."""
    exact = is_exact(row["metric"])
    if row["verdict"] not in VERDICTS or (exact and row["ours"] == row["published"]):
        return ""  # nobody rounds a byte
    unit = margin_unit(row["metric"], row["published"])
    ours = Sample(row["ours"], row["std"], row["n"])
    found = {verdict(ours, theirs, unit, exact=exact) for theirs in readings}
    return ", ".join(name for name in VERDICTS if name in found - {row["verdict"]})
