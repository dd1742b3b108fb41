"""Every metric that tables, figures and claims may name, and its value in a run."""

from __future__ import annotations

import math
import re

from fedlogit.errors import DataError
from fedlogit.papers.metric_names import is_counted, is_share, unknown_metric
from fedlogit.results.metrics import celm, fedol, general, tally_train
from fedlogit.results.metrics.metric import Metric
from fedlogit.results.runs.run import Run

__all__ = ["METRICS", "Metric", "metric_label", "metric_of", "value"]

METRICS = {
    metric.name: metric
    for module in (general, celm, tally_train, fedol)
    for metric in module.METRICS
}


def metric_of(name: str) -> Metric:
    """Return the metric of a name such as ``accuracy`` or ``accuracy@10``.

    Any column of ``rounds.csv`` is one, too. It may be of any size, such as a loss, a number of
    clients or one between 0 and 1, so it is printed with significant digits.
    """
    column = name.partition("@")[0]
    if column in METRICS:
        return METRICS[column]
    label = column.replace("_", " ")
    if is_share(column):
        return Metric(column, label, unit="share")
    return Metric(column, label, decimals=0 if is_counted(column) else None)


def metric_label(name: str, samples: str) -> str:
    """Return what a metric is called in words: ``accuracy@10`` is test accuracy after round 10.

    Args:
        name: The metric.
        samples: Which samples it was measured on: `RunSpec.samples`, or of several runs, as from
            `measured_on`.
    """
    _, _, when = name.partition("@")
    label = re.sub(r"\btest\b", samples, metric_of(name).label)
    return f"{label} after round {when}" if when else label


def value(run: Run, name: str) -> float:
    """Return a metric of a run; NaN throughout for a run that diverged.

    Args:
        run: A finished run.
        name: A metric's name, or any column of ``rounds.csv``, which is taken at the last round
            that has it; or a column and a round, as ``accuracy@10``, which is NaN if the run is
            shorter than that. Distances have rounds of warm-up: ``jsd@3``.

    Raises:
        FedlogitError: if there is no such metric, with the nearest one suggested.
        DataError: if the run was made without the column, or the round exists but the column was
            not measured in it.
    """
    if run.diverged:
        return math.nan
    column, at, when = name.partition("@")
    metric = metric_of(name)
    if at and metric.at_round:
        return metric.at_round(run, _round(column, when))
    if column not in run.rounds and metric.absence:
        raise DataError(f"{run.folder}: the run has no {column}; {metric.absence}")
    if column not in run.rounds and (at or metric.compute is None):
        computed = [key for key, known in METRICS.items() if known.compute]
        raise unknown_metric(name, [*computed, *run.rounds.columns], f"{run.folder}: ")
    if at:
        return _value_at_round(run, column, when)
    if metric.compute:
        return metric.compute(run)
    measured = run.rounds[column].dropna()
    return float(measured.iloc[-1]) if len(measured) else math.nan


def _value_at_round(run: Run, column: str, when: str) -> float:
    """Return a column of ``rounds.csv`` at one round, or NaN if the run is shorter."""
    number = _round(column, when)
    if number > len(run.rounds):
        return math.nan
    found = float(run.rounds[column].iloc[number - 1])
    if math.isnan(found):
        raise DataError(f"{run.folder}: {column} was not measured in round {when}")
    return found


def _round(column: str, when: str) -> int:
    """Return the round of a metric such as ``accuracy@10``."""
    if not when.isdecimal() or int(when) < 1:
        raise DataError(f"metric {column}@{when}: the round must be a number from 1")
    return int(when)
