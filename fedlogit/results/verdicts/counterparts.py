"""The runs that a published number is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.axis_values import scalar
from fedlogit.papers.published import place_of
from fedlogit.results.collect import axis_value_matches, collect
from fedlogit.results.verdicts.number_rows import NumberPlace, PublishedNumber, published_numbers

__all__ = [
    "Counterpart",
    "Matched",
    "counterpart",
    "matched_numbers",
    "matching_runs",
    "tables_standing_for",
    "values_here",
]


@dataclass(frozen=True)
class Counterpart:
    """The runs of one published number.

    Attributes:
        artefact: The table that has them.
        frame: All runs of that table, a row each.
        runs: Those of them that stand for the number.
        difference: How their settings differ from the number's: ``public.size=500``; mostly "".
    """

    artefact: Artefact
    frame: pd.DataFrame
    runs: pd.DataFrame
    difference: str


Matched = list[tuple[PublishedNumber, Counterpart | None]]
"""Published numbers and their runs; None where nothing was run."""


def matched_numbers(artefacts: Sequence[Artefact], reference: pd.DataFrame) -> Matched:
    """Return each published number and its runs, table by table.

    Args:
        artefacts: A paper's tables, all at one scale; joined with `reference` by their id, or by
            what they stand for.
        reference: Its published numbers, as from
            `fedlogit.results.verdicts.published.read_reference`.

    Raises:
        DataError: if a run is missing or damaged.
    """
    matched = []
    for table, of_table in reference.groupby("table", sort=False):
        metrics = of_table["metric"].unique()
        frames = [
            (a, collect(a, metrics, gaps=True)) for a in tables_standing_for(artefacts, str(table))
        ]
        matched += [(number, counterpart(frames, number)) for number in published_numbers(of_table)]
    return matched


def tables_standing_for(artefacts: Iterable[Artefact], table: str) -> list[Artefact]:
    """Return the tables with runs that stand for a paper's table, that table itself first."""
    drawn = [artefact for artefact in artefacts if artefact.runs]
    found = [a for a in drawn if table in (a.id, a.stands_for and a.stands_for.table)]
    return sorted(found, key=lambda artefact: artefact.id != table)


def counterpart(
    frames: Iterable[tuple[Artefact, pd.DataFrame]], number: NumberPlace
) -> Counterpart | None:
    """Return the runs of a published number, from the first table that has any.

    Args:
        frames: Tables that stand for the number's, as from `tables_standing_for`, and their runs.
        number: Which number it is.
    """
    for artefact, frame in frames:
        here = values_here(artefact)
        runs = matching_runs(frame, number, here)
        if len(runs):
            parts = [artefact.id] if artefact.id != number["table"] else []
            parts += [
                f"{axis}={here[axis][value]}"
                for axis, value in place_of(number).items()
                if value in here.get(axis, {})
            ]
            return Counterpart(artefact, frame, runs, "; ".join(parts))
    return None


def values_here(artefact: Artefact) -> dict[str, dict[str, str]]:
    """Return, for each axis, the values that runs have in place of published ones."""
    axes = artefact.stands_for.axes if artefact.stands_for else {}
    return {
        axis: {published: str(scalar(value)) for published, value in values.items()}
        for axis, values in axes.items()
    }


def matching_runs(
    frame: pd.DataFrame, number: NumberPlace, here: Mapping[str, Mapping[str, str]] | None = None
) -> pd.DataFrame:
    """Return the runs of a published number; an empty partition matches any.

    Args:
        frame: Runs, as from `collect`.
        number: Which number it is.
        here: Axis -> published value -> the value that runs have in its place.
    """
    for axis, value in place_of(number).items():
        if axis not in frame:
            return frame[:0]
        frame = frame[
            axis_value_matches(frame[axis], [(here or {}).get(axis, {}).get(value, value)])
        ]
    return frame
