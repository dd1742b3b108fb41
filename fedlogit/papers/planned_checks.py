"""Checks of planned tables and figures: runs that share a cell, and metrics of one round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedlogit.errors import FedlogitError
from fedlogit.papers.axis_values import comparable, run_place
from fedlogit.papers.metric_names import TESTED_COLUMNS
from fedlogit.papers.planned import PlannedArtefact
from fedlogit.papers.schema import Table

__all__ = ["check_metric_rounds", "check_table_cells"]

_OF_BEST_ROUND = "accuracy_at_best_validation"


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
        place = run_place(cell.spec, cell.axes)
        key = (*(comparable(place.get(axis)) for axis in printed), cell.spec.seed)
        if (other := first.setdefault(key, place)) is not place:
            raise FedlogitError(
                f"{planned.paper.paper}.yaml: {planned.id} at scale {planned.scale}: two runs of a"
                f" seed share a cell ({', '.join(printed)}); {_varying_axis(place, other)}"
            )


def _varying_axis(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return which axis two runs differ in, and what to do."""
    for axis, value in one.items():
        if other.get(axis) != value:
            return f"axis {axis} is {other.get(axis)} and {value}: put it into rows or columns"
    return "no axis tells them apart"


def check_metric_rounds(planned: PlannedArtefact) -> None:
    """Refuse metrics of a round that no run reaches, or one reaches without what it is tested on.

    Raises:
        FedlogitError: before anything is trained for it.
    """
    for name in planned.paper.artefacts[planned.id].shown:
        column, at, when = name.partition("@")
        if column == _OF_BEST_ROUND:
            _check_best_round(planned, name)
            continue
        if not at:
            continue
        long = [cell.spec for cell in planned.cells if cell.spec.rounds >= int(when)]
        where = f"{planned.paper.paper}.yaml: {planned.id} at scale {planned.scale}: {name}"
        if not long:
            most = max(cell.spec.rounds for cell in planned.cells)
            raise FedlogitError(f"{where}: no run has a round {when}; the longest has {most}")
        if column in TESTED_COLUMNS and not all(spec.tests_in(int(when)) for spec in long):
            raise FedlogitError(
                f"{where}: runs are not tested in round {when}; name it in evaluation.rounds"
            )


def _check_best_round(planned: PlannedArtefact, name: str) -> None:
    """Refuse the metric of the best validated round where a run has no validation accuracy."""
    where = f"{planned.paper.paper}.yaml: {planned.id} at scale {planned.scale}: {name}"
    if name != _OF_BEST_ROUND:
        raise FedlogitError(f"{where}: the round is chosen by validation; give {_OF_BEST_ROUND}")
    if not all(cell.spec.evaluation.with_test for cell in planned.cells):
        raise FedlogitError(
            f"{where}: its runs need both accuracies; give evaluation: {{validation: n, with_test:"
            " true}"
        )
