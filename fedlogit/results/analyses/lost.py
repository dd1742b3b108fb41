"""Accuracy that methods lose under several conditions, compared with one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from fedlogit.errors import DataError, FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.axis_values import run_place
from fedlogit.papers.options import Lost
from fedlogit.results.analyses.analysis import Analysis, sorted_as
from fedlogit.results.collect import refuse_mixed
from fedlogit.results.formatting import spread
from fedlogit.results.method_order import in_order
from fedlogit.results.runs.gathered import gather
from fedlogit.results.runs.run import Run
from fedlogit.runs import layout
from fedlogit.runs.hints import rerun_hint

__all__ = ["analyse", "losses"]

_LEAST = 0.0005  # half of the last decimal that is printed
_KEYS = ["dataset", "partition", "method"]
_PLACE = [*_KEYS, "condition"]


def analyse(artefact: Artefact) -> Analysis:
    """Return a row per data set, partition and method, a column per condition.

    Methods are in the order that they have in the figures of the same runs.

    Columns of the CSV: `dataset`, `partition`, `method`, `condition` (its label), and means over
    seeds: `accuracy`, `lost` and `lost_std` (of the differences of each seed), `n`, `diverged`;
    `cannot` says why a method has no run there.
    """
    options = artefact.read_options(Lost)
    numbers = losses(artefact, options)
    shown = _printed_table(artefact, options, numbers)
    right = tuple(shown.columns[2:])
    differences = numbers[numbers["condition"] != options.against]
    sentences = _caption_sentences(artefact, options, differences)
    return Analysis(numbers, shown, sentences, heads=2, right=right)


def losses(artefact: Artefact, options: Lost) -> pd.DataFrame:
    """Return accuracy and what of it is lost, as `analyse` says.

    Where some clients of a run are not tested, because they are adversaries, those that are tested
    are compared with the same clients of the run that it is compared with. What the conditions are
    compared with has the seeds that one of them has, so that a row is of the same runs.

    Raises:
        DataError: if a run has none to be compared with, or lacks the accuracy of each client.
        FedlogitError: if two runs share a place, or the runs have no such axis.
    """
    runs = pd.DataFrame(_placed_runs(artefact, options))
    refuse_mixed(runs, _PLACE)
    standards = runs[runs["condition"] == options.against][[*_KEYS, "seed", "run"]]
    pairs = _runs_at_shared_seeds(runs, options).merge(
        standards.rename(columns={"run": "standard"}), how="left", on=[*_KEYS, "seed"]
    )
    if (alone := pairs["standard"].isna()).any():
        first = pairs[alone].iloc[0]
        raise DataError(
            f"{artefact.name}: {first['method']} on {first['partition']} with seed"
            f" {first['seed']}: nothing to compare {first['condition']!r} with; add"
            f" {options.against!r} to its grid"
        )
    found = zip(pairs["run"], pairs["standard"], strict=True)
    pairs[["accuracy", "lost"]] = [_accuracy_and_loss(*pair) for pair in found]
    pairs["diverged"] = [run.diverged for run in pairs["run"]]
    means = pairs.groupby(_PLACE, sort=False).agg(
        accuracy=("accuracy", pd.Series.mean),  # the group's "mean" differs in the last digit
        lost=("lost", pd.Series.mean),
        lost_std=("lost", pd.Series.std),
        n=("lost", "count"),
        diverged=("diverged", "sum"),
    )
    rows = means.assign(cannot="").reset_index().to_dict("records")
    lacking = [
        _place(artefact, options, _off_the_grid(runs, unable.axes) | unable.axes)
        | {"n": 0, "diverged": 0, "cannot": unable.why}
        for unable in artefact.cannot
    ]
    return _in_order(artefact, options, pd.DataFrame([*rows, *lacking]))


def _placed_runs(artefact: Artefact, options: Lost) -> Iterator[dict[str, Any]]:
    """Yield each run with its place in the table and its seed."""
    for ref, run in gather(artefact):
        axes = run_place(run.spec, ref.axes)
        yield _place(artefact, options, axes) | {"seed": run.spec.seed, "run": run}


def _off_the_grid(runs: pd.DataFrame, axes: dict[str, Any]) -> dict[str, Any]:
    """Return what a cell without a run has where the grid has no such axis: its method's runs do.

    A method without any run has what the others have.
    """
    of_method = runs[runs["method"] == axes["method"]]
    first = (of_method if len(of_method) else runs).iloc[0]
    return {key: first[key] for key in ("dataset", "partition")}


def _place(artefact: Artefact, options: Lost, axes: dict[str, Any]) -> dict[str, Any]:
    """Return a place in the table: its row, and the label of its condition."""
    if options.condition not in axes:
        raise FedlogitError(
            f"{artefact.name}: option condition = {options.condition!r} is no axis of its runs"
        )
    condition = artefact.label(axes[options.condition], options.condition)
    return {key: axes[key] for key in _KEYS} | {"condition": condition}


def _runs_at_shared_seeds(runs: pd.DataFrame, options: Lost) -> pd.DataFrame:
    """Return all but what a row is compared with at seeds that none of its conditions has."""
    other = runs["condition"] != options.against

    def shared(keys: list[str]) -> np.ndarray:
        conditions = pd.MultiIndex.from_frame(runs[other][keys])
        return pd.MultiIndex.from_frame(runs[keys]).isin(conditions)

    return runs[other | shared([*_KEYS, "seed"]) | ~shared(_KEYS)]


def _accuracy_and_loss(run: Run, standard: Run) -> tuple[float, float]:
    """Return a run's accuracy, and what of the standard's it lost; NaN where one diverged."""
    if run.diverged or standard.diverged:
        return _accuracy(run), math.nan
    tested = len(_clients(run))
    return _accuracy(run), float(np.mean(_clients(standard)[:tested])) - _accuracy(run)


def _accuracy(run: Run) -> float:
    return math.nan if run.diverged else float(np.mean(_clients(run)))


def _clients(run: Run) -> list[float]:
    """Return the accuracy of each model that was tested."""
    found = run.result.final.per_client
    if not found:
        raise DataError(
            f"{run.folder / layout.RESULT}: key 'final.per_client' is missing;"
            f" {rerun_hint(run.folder)}"
        )
    return found


def _in_order(artefact: Artefact, options: Lost, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows by data set, partition, method and condition; others than methods as the grid."""
    labels = [artefact.label(v, options.condition) for v in artefact.in_order(options.condition)]
    order = {key: artefact.in_order(key) or list(rows[key]) for key in _KEYS}
    order["method"] = in_order(order["method"])
    order["condition"] = list(dict.fromkeys([options.against, *labels]))
    return sorted_as(rows, order)


def _printed_table(artefact: Artefact, options: Lost, numbers: pd.DataFrame) -> pd.DataFrame:
    several = numbers["dataset"].nunique() > 1
    conditions = list(dict.fromkeys(numbers["condition"]))
    rows = []
    for (dataset, partition, method), cell in numbers.groupby(_KEYS, sort=False):
        row = {
            "Heterogeneity": artefact.place_label(dataset, partition, several=several),
            "Method": artefact.label(method),
        }
        texts = {one["condition"]: _cell_text(one, options) for one in cell.to_dict("records")}
        rows.append(row | {_heading(c, options): texts.get(c, "") for c in conditions})
    return pd.DataFrame(rows)


def _heading(condition: str, options: Lost) -> str:
    points = "points gained" if options.gained else "points lost"
    return f"{condition}: {'accuracy' if condition == options.against else points}"


def _cell_text(cell: dict[Any, Any], options: Lost) -> str:
    """Return an accuracy, or what is lost of it or gained, in per cent or points."""
    if cell["cannot"]:
        return "n/a"
    standard = cell["condition"] == options.against
    lost = -cell["lost"] if options.gained else cell["lost"]
    mean, std = (cell["accuracy"], math.nan) if standard else (lost, cell["lost_std"])
    mean = 0.0 if abs(mean) < _LEAST else mean  # not -0.0
    text = spread(mean, std, "accuracy", percent=True, decimals=1)
    return f"{text} †{cell['diverged']}" if cell["diverged"] else text


def _caption_sentences(
    artefact: Artefact, options: Lost, differences: pd.DataFrame
) -> tuple[str, ...]:
    several = differences["n"].max() > 1
    below = "a loss" if options.gained else "a gain"
    sentences = [f"Points are compared seed by seed; below 0 is {below}"]
    sentences.append(
        "Mean ± standard deviation of the differences over seeds"
        if several
        else "One seed: no test, and so no winner"
    )
    if differences["diverged"].any():
        sentences.append("†k: training diverged for k seeds, which are not in the mean")
    return tuple(filter(None, [*sentences, artefact.why_cannot]))
