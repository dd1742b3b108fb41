"""Which runs each cell of a table or figure is of, as links to a list with each run once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.axis_values import scalar

__all__ = ["RunLink", "RunsOfCell", "run_anchor", "runs_by_cell"]

_DIGITS = 10  # of a run's digest; they tell thousands of runs apart


class RunLink(NamedTuple):
    """A run of a cell: its seed, and the anchor of its row in the list of all runs."""

    seed: Any
    anchor: str


class RunsOfCell(NamedTuple):
    """The runs of a cell: the cell's number in the table, its place on the axes, their links."""

    number: int
    place: str
    runs: list[RunLink]


def run_anchor(chapter: str, digest: str) -> str:
    """Return the anchor of a run's row in the list of a chapter."""
    return f"{chapter}-run-{digest[:_DIGITS]}"


def runs_by_cell(artefact: Artefact, cells: Sequence[int], chapter: str) -> list[RunsOfCell]:
    """Return the runs of each cell, in the order of the cells' numbers.

    Args:
        artefact: The table or figure.
        cells: The number of the cell that each of its runs belongs to.
        chapter: What the anchors of its chapter begin with.
    """
    named = [*(artefact.rows or ()), *(artefact.columns or ())]
    axes = [axis for axis in _varying(artefact) if axis in named or not named] or ["method"]
    found: dict[int, RunsOfCell] = {}
    for number, ref in sorted(zip(cells, artefact.runs, strict=True), key=lambda pair: pair[0]):
        values = [_value(artefact, axis, ref.axes.get(axis)) for axis in axes]
        place = ", ".join(filter(None, values))
        cell = found.setdefault(number, RunsOfCell(number, place, []))
        cell.runs.append(RunLink(ref.axes.get("seed", ""), run_anchor(chapter, ref.digest)))
    return list(found.values())


def _varying(artefact: Artefact) -> list[str]:
    """Return the axes, but the seed's, on which the runs differ."""
    every = dict.fromkeys(axis for ref in artefact.runs for axis in ref.axes if axis != "seed")
    values = {axis: {str(ref.axes.get(axis)) for ref in artefact.runs} for axis in every}
    return [axis for axis, found in values.items() if len(found) > 1]


def _value(artefact: Artefact, axis: str, value: object) -> str:
    """Return how a value is printed where no heading says of which axis it is; "" of none."""
    label = artefact.full_label(scalar(value), axis)
    return "" if label == scalar(None) else label
