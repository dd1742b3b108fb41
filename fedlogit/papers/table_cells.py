"""Cells of a table: whether the planned runs of each differ in nothing but the seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedlogit.errors import FedlogitError
from fedlogit.papers.axis_values import comparable, scalar
from fedlogit.papers.model import Table
from fedlogit.papers.planned import Cell, PlannedArtefact

__all__ = ["check_table_cells"]


def check_table_cells(planned: PlannedArtefact) -> None:
    """Refuse a table of means in which runs that differ in more than the seed share a cell.

    Raises:
        FedlogitError: naming the axis, before anything is trained for it.
    """
    entry = planned.entry
    if not isinstance(entry, Table) or entry.analysis:
        return
    printed = [axis for axis in entry.printed if axis != "metric"]
    first: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in planned.cells:
        place = _place(cell)
        key = (*(comparable(place.get(axis)) for axis in printed), cell.spec.seed)
        if (other := first.setdefault(key, place)) is not place:
            raise FedlogitError(
                f"{planned.paper.paper}.yaml: {planned.id} at scale {planned.scale}: two runs of a"
                f" seed share a cell ({', '.join(printed)}); {_varying_axis(place, other)}"
            )


def _place(cell: Cell) -> dict[str, Any]:
    """Return where a run stands, also on the axes that every run has."""
    always: dict[str, Any] = {
        "dataset": cell.spec.dataset,
        "partition": cell.spec.partition.name,
    }
    return {axis: scalar(value) for axis, value in {**always, **cell.axes}.items()}


def _varying_axis(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return which axis two runs differ in, and what to do."""
    for axis, value in one.items():
        if other.get(axis) != value:
            return f"axis {axis} is {other.get(axis)} and {value}: put it into rows or columns"
    return "no axis tells them apart"
