"""Finished runs as tidy frames: one row per run, or one row per run and round."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from fedlogit.data import DATASETS
from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers.artefact import REFERENCE, Artefact, RunRef
from fedlogit.papers.axis_values import comparable, run_place, scalar
from fedlogit.results.metrics import METRICS, value
from fedlogit.results.runs.gathered import gather
from fedlogit.results.runs.run import Run

__all__ = [
    "axis_value_matches",
    "collect",
    "competitors",
    "curves",
    "dataset_notes",
    "describe",
    "describe_briefly",
    "distinct_values",
    "refuse_mixed",
    "seeds",
    "sources",
    "summarise",
    "summarise_one",
]

_METRICS = ("accuracy", "accuracy_std", "balanced_accuracy", "bytes_up", "bytes_down", "seconds")

_CELL = ["dataset", "method"]


def collect(
    artefact: Artefact,
    metrics: Iterable[str] = (),
    *,
    gaps: bool = False,
    optional: Iterable[str] = (),
) -> pd.DataFrame:
    """Return one row per run: its axes, final metrics and provenance.

    A run that diverged is a row whose metrics are NaN and whose `diverged` is true.

    Args:
        artefact: Which runs.
        metrics: Metrics wanted besides the usual ones and the artefact's own.
        gaps: Whether a column that only some of the methods log is NaN in the runs of the others,
            not an error.
        optional: More metrics, which are NaN in runs without the column, also if all are; they
            stand in the run's `lacks`.

    Raises:
        DataError: if a run is missing, incomplete, or not the one that was asked for, or if runs
            that should have seen the same data did not.
        FedlogitError: if a run does not have one of the metrics.
    """
    optional = frozenset(optional)
    wanted = dict.fromkeys([*_METRICS, *artefact.shown, *metrics, *sorted(optional)])
    found = list(gather(artefact))
    logged = {column for _, run in found if gaps for column in run.rounds.columns}
    computed = {name for name, metric in METRICS.items() if metric.compute}
    rows = []
    for ref, run in found:
        own = computed | {*run.rounds.columns}
        may_lack = (logged | {_column(metric) for metric in optional}) - own
        values = {
            metric: math.nan if _column(metric) in may_lack else value(run, metric)
            for metric in wanted
        }
        lacks = () if run.diverged else tuple(m for m in optional if _column(m) in may_lack)
        rows.append(_row(artefact, ref, run, values) | {"lacks": lacks})
    axes = {axis for ref in artefact.runs for axis in ref.axes}
    return pd.DataFrame(rows).assign(**_columns_of_mixed_numbers(rows, axes))


def _column(metric: str) -> str:
    """Return the column of ``rounds.csv`` that a metric such as ``accuracy@10`` is of."""
    return metric.partition("@")[0]


def _columns_of_mixed_numbers(
    rows: Sequence[Mapping[str, Any]], axes: Iterable[str]
) -> dict[str, pd.Series]:
    """Return the columns of axes with integers and others, as given: pandas makes 1 to 1.0."""
    given = {axis: [row.get(axis) for row in rows] for axis in axes}
    return {
        axis: pd.Series(values, dtype=object)
        for axis, values in given.items()
        if {int, float} <= {*map(type, values)}
    }


def competitors(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of all methods but the reference."""
    return frame[frame["method"] != REFERENCE]


def curves(artefact: Artefact) -> pd.DataFrame:
    """Return one row per run and round: the run's axes and the columns of its ``rounds.csv``.

    Raises:
        DataError: as `collect`.
    """
    parts = []
    for ref, run in gather(artefact):
        parts.append(run.rounds.assign(**_row(artefact, ref, run, {})))
    return pd.concat(parts, ignore_index=True)


def summarise(frame: pd.DataFrame, axes: Iterable[str], metric: str) -> pd.DataFrame:
    """Return mean and spread over seeds for each cell of the axes, in order of appearance.

    Args:
        frame: Runs, as from `collect`.
        axes: What makes a cell; every other axis must be constant within it, the seed excepted.
        metric: The column to summarise.

    Returns:
        A row per cell: the axes, `mean`, `std` (ddof=1; NaN for n=1), `n` (runs that have the
        metric) and `diverged` (runs that have not, because training failed).

    Raises:
        FedlogitError: if two runs of a cell have the same seed, so that something else differs.
    """
    keys = list(axes)
    missing = [key for key in keys if key not in frame]
    if missing:
        raise unknown("axis", missing[0], frame.columns)
    refuse_mixed(frame, keys)
    groups = frame.groupby(keys, sort=False, dropna=False)
    return groups.agg(
        mean=(metric, "mean"),
        std=(metric, "std"),
        n=(metric, "count"),
        diverged=("diverged", "sum"),
    ).reset_index()


def summarise_one(frame: pd.DataFrame, metric: str) -> pd.Series:
    """Return what `summarise` has of runs that are to be of one data set and method.

    Args:
        frame: These runs, as from `collect`; at least one.
        metric: The column to summarise.

    Raises:
        FedlogitError: as `summarise`, or if they are of several.
    """
    cells = summarise(frame, _CELL, metric)
    if len(cells) > 1:
        several = " and ".join(", ".join(map(str, cell)) for cell in cells[_CELL].to_numpy())
        raise FedlogitError(f"runs of {several} would be one number; give those of one")
    return cells.iloc[0]


def refuse_mixed(frame: pd.DataFrame, axes: Sequence[str]) -> None:
    """Refuse runs that would be averaged though more than the seed differs between them.

    Args:
        frame: Runs, as from `collect`.
        axes: What makes a cell.

    Raises:
        FedlogitError: if two runs of a cell have the same seed, with the axes that differ in it.
    """
    keys = [*axes, "seed"]
    twice = frame[frame.duplicated(keys, keep=False)]
    if len(twice):
        alike = next(runs for _, runs in twice.groupby(keys, sort=False, dropna=False))
        cell = ", ".join(f"{key}={alike.iloc[0][key]}" for key in keys)
        raise FedlogitError(f"two runs share the cell {cell}: {_differing(alike)} within it")


def _differing(runs: pd.DataFrame) -> str:
    """Return which axes vary, and how: ``axis 'dataset' varies (digits, mnist)``."""
    places = [json.loads(place) for place in runs.get("cell", ())]
    found = {}
    for axis in dict.fromkeys(axis for place in places for axis in place):
        values = dict.fromkeys(str(scalar(place.get(axis))) for place in places)
        if len(values) > 1:
            found[axis] = f"axis {axis!r} varies ({', '.join(values)})"
    return " and ".join(found.values()) or "another axis varies"


def axis_value_matches(values: pd.Series, wanted: Iterable[object]) -> pd.Series:
    """Return which values on an axis are among those wanted: numbers as such, others as text."""
    return values.map(comparable).isin({comparable(value) for value in wanted})


def seeds(frame: pd.DataFrame) -> str:
    """Return how many seeds are behind the cells of a frame: ``3 seeds``, or ``1–3 seeds``."""
    keys = [axis for axis in ("dataset", "partition", "method", "cell") if axis in frame]
    counts = frame.groupby(keys, dropna=False)["seed"].nunique()
    low, high = counts.min(), counts.max()
    return (f"{low}" if low == high else f"{low}–{high}") + (" seed" if high == 1 else " seeds")


def describe(frame: pd.DataFrame) -> str:
    """Return one line on where runs come from: scale, seeds, devices, engines, stand-ins."""
    engines = frame["engine"].str.replace(r", (server \w+)$", r" (\1)", regex=True)
    machines = [
        f"device: {distinct_values(frame['device'], ', ')}",
        f"engine: {distinct_values(engines, ', ')}",
    ]
    scale, number, *others = _what_was_run(frame)
    return "; ".join([scale, number, *machines, *others])


def describe_briefly(frame: pd.DataFrame) -> str:
    """Return `describe`'s line without devices and engines, for what has a caption below it.

    A note on the one data set there is does not name it again: what stands before the line does.
    """
    return "; ".join(_what_was_run(frame, named=frame["dataset"].nunique() > 1))


def _what_was_run(frame: pd.DataFrame, *, named: bool = True) -> list[str]:
    """Return the scale, the seeds, how many runs diverged, and what the data are."""
    parts = [f"scale: {distinct_values(frame['scale'], ', ')}", seeds(frame)]
    failed = int(frame.groupby("digest")["diverged"].first().sum())
    if failed:
        parts.append(f"{failed} diverged")
    return [*parts, *dataset_notes(frame, named=named)]


def dataset_notes(frame: pd.DataFrame, *, named: bool = True) -> list[str]:
    """Return what is to be known of data that are not the papers' own: ``EMNIST: …``.

    Args:
        frame: A row per run.
        named: Whether each begins with its data set.
    """
    noted = frame[frame["dataset_note"] != ""].drop_duplicates(["dataset", "dataset_note"])
    if not named:
        return list(noted["dataset_note"])
    names = [DATASETS[name].title if name in DATASETS else name for name in noted["dataset"]]
    return [f"{name}: {note}" for name, note in zip(names, noted["dataset_note"], strict=True)]


def sources(frame: pd.DataFrame) -> str:
    """Return `describe`'s line and of which code runs were made by several versions, if of any."""
    return "; ".join([describe(frame), *_several_versions(frame["code_version"])])


def _several_versions(versions: Iterable[str]) -> Iterator[str]:
    """Yield the number of versions of the library, and of each module from outside, if above one.

    A run that needs no module from outside is of no version of it.

    Args:
        versions: As of `fedlogit.results.runs.run.Result`, ``0.3.0+abc mylab.methods@def``.
    """
    found: dict[str, set[str]] = {}
    for version in versions:
        library, *modules = version.split(" ")
        found.setdefault("the code", set()).add(library)
        for module in modules:
            name, _, digest = module.rpartition("@")
            found.setdefault(name, set()).add(digest)
    for name, different in found.items():
        if len(different) > 1:
            yield f"{len(different)} versions of {name}"


def distinct_values(values: pd.Series, separator: str = "; ") -> str:
    """Return what a column has, each value once and sorted."""
    return separator.join(sorted(set(values)))


def _axes(ref: RunRef, run: Run) -> dict[str, object]:
    return run_place(run.spec, ref.axes) | {"seed": run.spec.seed}


def _row(artefact: Artefact, ref: RunRef, run: Run, values: Mapping[str, float]) -> dict[str, Any]:
    """Return a run's axes, values and provenance; an axis that is both (`precision`) counts."""
    axes = _axes(ref, run)
    return axes | dict(values) | _provenance(artefact, ref, run) | axes


def _provenance(artefact: Artefact, ref: RunRef, run: Run) -> dict[str, object]:
    source = run.result.provenance
    return {
        "diverged": run.diverged,
        "classes": len(run.result.final.per_class),
        "scale": artefact.scale,
        "device": source.device,
        "engine": source.engine,
        "precision": source.precision,
        "code_version": source.whole_version,
        "hours": source.seconds_with_clients / 3600,
        "dataset_note": source.dataset_note,
        "cell": ref.cell,
        "digest": ref.digest,
        "dir": str(ref.dir),
    }
