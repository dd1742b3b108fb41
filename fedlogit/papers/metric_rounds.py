"""Metrics of one round, such as ``accuracy@10``: whether the planned runs will have them."""

from __future__ import annotations

from fedlogit.errors import FedlogitError
from fedlogit.papers.planned import PlannedArtefact

__all__ = ["check_metric_rounds"]

# Columns of rounds.csv that only tested rounds have (`fedlogit.engine.evaluation.Scores.row`).
_TESTED = ("accuracy", "balanced_accuracy", "loss_test", "perplexity", "ece")


def check_metric_rounds(planned: PlannedArtefact) -> None:
    """Refuse metrics of a round that no run reaches, or that one reaches without being tested.

    Raises:
        FedlogitError: before anything is trained for it.
    """
    for name in planned.paper.artefacts[planned.id].shown:
        column, at, when = name.partition("@")
        if not at:
            continue
        long = [cell.spec for cell in planned.cells if cell.spec.rounds >= int(when)]
        where = f"{planned.paper.paper}.yaml: {planned.id} at scale {planned.scale}: {name}"
        if not long:
            most = max(cell.spec.rounds for cell in planned.cells)
            raise FedlogitError(f"{where}: no run has a round {when}; the longest has {most}")
        if column.startswith(_TESTED) and not all(spec.tests_in(int(when)) for spec in long):
            raise FedlogitError(
                f"{where}: runs are not tested in round {when}; name it in evaluation.rounds"
            )
