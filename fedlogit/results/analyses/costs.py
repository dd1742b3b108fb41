"""Rounds and bytes until a method has 90 % of the ceiling's accuracy, seconds, worst client."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fedlogit.errors import DataError
from fedlogit.papers.artefact import REFERENCE, Artefact
from fedlogit.papers.axis_values import run_place
from fedlogit.results.analyses.analysis import Analysis, sorted_as
from fedlogit.results.collect import refuse_mixed
from fedlogit.results.formatting import number
from fedlogit.results.metrics import value
from fedlogit.results.runs.gathered import gather
from fedlogit.results.runs.run import Run

__all__ = ["analyse"]

_SHARE = 0.9
_SECONDS = ("seconds", "aggregation_share")
_MEANS = ("rounds_to", "bytes_to", "bytes_sent", "accuracy_min", "ece")
_MEASURED = (*_MEANS, *_SECONDS)
_KEYS = ["dataset", "partition", "method"]
_SENTENCES = (
    "kB are what a client sends, those to 90 % by the first tested round in which the mean accuracy"
    " was 90 % of that of the model trained on everybody's samples with the same seed; of several"
    " seeds, the mean over those that came so far, whose number is in brackets where it is not all",
    "ECE is the expected calibration error (15 bins), the mean over the runs that measured it;"
    " seconds are those of the whole simulated run,"
    " clients and server, with its clients' training where several methods share it, the median"
    " over seeds; aggregation is all but clients' training and predictions, in per cent of the"
    " seconds of the runs that measured it, the median too: fits of densities and of meta-models,"
    " probing, the server's training",
    "The first table has the median over the heterogeneities; the CSV has a row for each of them,"
    " also with the rounds to 90 %",
)
_RIGHT = ("kB in all", "Seconds", "Aggregation, %")


def analyse(artefact: Artefact) -> Analysis:
    """Return a row per data set, partition and method: means over seeds, and medians of seconds.

    Columns of the CSV: `dataset`, `partition`, `method`, `n` (seeds at which it did not diverge),
    `reached` (at how many of them the accuracy came to 90 % of the ceiling's of the same seed),
    `rounds_to` and `bytes_to` (the first tested round in which it did, and what a client had sent
    by its end; means over the seeds that reached it), `bytes_sent`, `accuracy_min` (the worst
    client), `ece`, and, as medians over seeds, `seconds` and `aggregation_share` of these, of the
    runs that measured it.
    """
    runs = [(ref.axes, run) for ref, run in gather(artefact)]
    ceilings = {
        (run.spec.dataset, run.spec.seed): value(run, "accuracy")
        for _, run in runs
        if run.spec.method.name == REFERENCE
    }
    rows = [
        _costs_of_run(artefact, axes, run, ceilings)
        for axes, run in runs
        if run.spec.method.name != REFERENCE
    ]
    frame = pd.DataFrame(rows)
    refuse_mixed(frame, _KEYS)
    counts = {"n": ("seconds", "count"), "reached": ("rounds_to", "count")}
    means = {name: (name, "mean") for name in _MEANS}
    # A machine that was busy during one run would make a mean its own.
    medians = {name: (name, "median") for name in _SECONDS}
    groups = frame.groupby(_KEYS, sort=False)
    numbers = groups.agg(**counts, **means, **medians).reset_index()
    order = {key: artefact.in_order(key) or list(numbers[key]) for key in _KEYS[:2]}
    numbers = sorted_as(numbers, order)
    return Analysis(
        numbers,
        _by_method(artefact, numbers),
        _SENTENCES,
        right=_RIGHT,
        more={
            "kB to 90 %": _by_place(artefact, numbers, _bytes_to),
            "Worst client's accuracy, %": _by_place(
                artefact, numbers, partial(_share, "accuracy_min")
            ),
            "ECE, %": _by_place(artefact, numbers, partial(_share, "ece")),
        },
    )


def _costs_of_run(
    artefact: Artefact, axes: dict[str, object], run: Run, ceilings: dict[tuple[str, int], float]
) -> dict[str, object]:
    place = run.spec.dataset, run.spec.seed
    if place not in ceilings:
        raise DataError(
            f"{artefact.name}: nothing to reach for {place[0]} at seed {place[1]}; add"
            f" {REFERENCE} to its grid"
        )
    row = run_place(run.spec, axes) | {"seed": run.spec.seed, "diverged": run.diverged}
    if run.diverged:
        return row | dict.fromkeys(_MEASURED, math.nan)
    at = _first_round(run.rounds["accuracy"], _SHARE * ceilings[place])
    sent = run.rounds["bytes_up"].cumsum() / run.spec.clients  # by the end of each round
    return row | {
        "rounds_to": math.nan if at is None else at,
        "bytes_to": math.nan if at is None else float(sent.iloc[at - 1]),
        "bytes_sent": value(run, "bytes_sent"),
        "accuracy_min": _value_if_measured(run, "accuracy_min"),
        "ece": _value_if_measured(run, "ece"),
        "seconds": (seconds := value(run, "seconds")),
        "aggregation_share": _aggregation_seconds(run) / seconds,
    }


def _value_if_measured(run: Run, column: str) -> float:
    """Return the last value of a column; NaN of a run that does not have it."""
    return value(run, column) if column in run.rounds else math.nan


def _aggregation_seconds(run: Run) -> float:
    """Return the seconds of rounds without clients' training and predictions; NaN if unknown."""
    if "seconds_clients" in run.rounds:
        return float((run.rounds["seconds"] - run.rounds["seconds_clients"].fillna(0)).sum())
    # A run in stages is given the predictions of its clients.
    in_stages = run.result.provenance.clients_wall_seconds > 0
    return float(run.rounds["seconds"].sum()) if in_stages else math.nan


def _first_round(accuracy: pd.Series, least: float) -> int | None:
    """Return the first round, from 1, with at least this accuracy; NaN is a round without test."""
    (places,) = np.nonzero(accuracy.to_numpy(dtype=float) >= least)
    return int(places[0]) + 1 if len(places) else None


def _by_method(artefact: Artefact, numbers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per method, with what hardly depends on how samples are divided."""
    medians = numbers.groupby("method", sort=False)[["bytes_sent", *_SECONDS]].median()
    return pd.DataFrame(
        {
            "Method": artefact.label(method),
            "kB in all": number(row["bytes_sent"] / 1e3, "bytes_sent", decimals=1),
            "Seconds": number(row["seconds"], "seconds", decimals=0),
            "Aggregation, %": number(100 * row["aggregation_share"], "", decimals=0),
        }
        for method, row in medians.iterrows()
    )


def _by_place(
    artefact: Artefact, numbers: pd.DataFrame, text: Callable[[dict[Any, Any]], str]
) -> pd.DataFrame:
    """Return a row per method and a column per data set and partition.

    Args:
        artefact: The table.
        numbers: A row for each cell, as in the CSV.
        text: What a cell says of its row.
    """
    several = numbers["dataset"].nunique() > 1
    places: dict[str, None] = {}
    texts: dict[str, dict[str, str]] = {}
    for row in numbers.to_dict("records"):
        place = artefact.place_label(row["dataset"], row["partition"], several=several)
        places[place] = None
        texts.setdefault(row["method"], {})[place] = text(row)
    rows = [{"Method": artefact.label(method)} | cells for method, cells in texts.items()]
    return pd.DataFrame(rows, columns=["Method", *places]).fillna("")


def _bytes_to(row: Mapping[Any, Any]) -> str:
    of = f" ({row['reached']} of {row['n']})" if 0 < row["reached"] < row["n"] else ""
    return number(row["bytes_to"] / 1e3, "bytes_to", decimals=1) + of


def _share(column: str, row: Mapping[Any, Any]) -> str:
    return number(row[column], "accuracy", percent=True, decimals=1)
