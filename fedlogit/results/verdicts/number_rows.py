"""A published number as a row of a table: as its file has it, beside ours, and in the record."""

from __future__ import annotations

from typing import TypedDict, cast

import pandas as pd

__all__ = [
    "ComparedNumber",
    "NumberPlace",
    "OurNumber",
    "PublishedNumber",
    "RecordedNumber",
    "TheirNumber",
    "compared_numbers",
    "published_numbers",
    "recorded_numbers",
]


class NumberPlace(TypedDict):
    """Which number of a paper it is."""

    table: str
    dataset: str
    partition: str
    method: str
    where: str
    metric: str


class PublishedNumber(NumberPlace):
    """A number as its paper has it; see `fedlogit.results.verdicts.published.read_reference`."""

    mean: float
    std: float
    n: float


class TheirNumber(NumberPlace):
    """A number as a comparison has it."""

    paper: float
    paper_std: float
    paper_n: float


class OurNumber(TypedDict):
    """Ours beside it, and the runs that it is of; where there is none, NaN and empty texts."""

    ours: float
    std: float
    difference: float
    low: float
    high: float
    hours: float
    n: int
    diverged: int
    verdict: str
    scale: str
    device: str
    counterpart: str
    code_versions: str
    runs: str


class ComparedNumber(TheirNumber, OurNumber):
    """A number beside ours; see `fedlogit.results.verdicts.compare.compare`."""


class RecordedNumber(NumberPlace, OurNumber):
    """A number in the record of all papers; see `fedlogit.results.record.numbers.record`."""

    paper: str
    published: float
    published_std: float
    published_n: float
    planned: int
    why: str


def published_numbers(rows: pd.DataFrame) -> list[PublishedNumber]:
    """Return the rows of a paper's published numbers."""
    return cast(list[PublishedNumber], rows.to_dict("records"))


def compared_numbers(rows: pd.DataFrame) -> list[ComparedNumber]:
    """Return the rows of a comparison, with `where`, which it lacks if all are empty."""
    whole = rows if "where" in rows else rows.assign(where="")
    return cast(list[ComparedNumber], whole.to_dict("records"))


def recorded_numbers(rows: pd.DataFrame) -> list[RecordedNumber]:
    """Return the rows of the record."""
    return cast(list[RecordedNumber], rows.to_dict("records"))
