"""Which method to use, by heterogeneity and budget of bytes: the best, or those that may be it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from fedlogit.errors import DataError, FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import Answer
from fedlogit.results.analyses.analysis import Analysis
from fedlogit.results.collect import collect, competitors, summarise
from fedlogit.results.formatting import number
from fedlogit.results.statistics.best_methods import INTERVAL, candidates
from fedlogit.results.statistics.means import ALPHA

__all__ = ["LABELLED", "analyse"]

_BUDGETS = {"10 kB": 1e4, "100 kB": 1e5, "1 MB": 1e6, "10 MB": 1e7, "any": math.inf}
"""What a client may send in the whole run, in bytes."""

LABELLED = "labelled"
"""In place of a budget, for methods that learn from labelled samples which others have not."""

_NAMED = 2  # methods in a cell, so that five columns fit on a page; the CSV has all


def analyse(artefact: Artefact) -> Analysis:
    """Return, for each data set, partition and budget, which methods may be the best.

    Columns of the CSV: `dataset`, `partition`, `budget`, `bytes_sent` (a client's, in the whole
    run), and those of `fedlogit.results.statistics.best_methods.candidates`; a row for each method
    that a budget allows. Methods that the option `labelled` names have the budget ``labelled``.
    """
    options = artefact.read_options(Answer)
    frame = competitors(collect(artefact, ["bytes_sent"]))
    if frame.empty:
        raise FedlogitError(f"{artefact.name}: there is no method beside the reference")
    numbers = pd.concat(_cells(artefact, frame, options), ignore_index=True)
    shown = _printed_table(artefact, numbers)
    bold = bool(shown.apply(lambda cells: cells.str.startswith("**")).any(axis=None))
    return Analysis(numbers, shown, _caption_sentences(artefact, frame, numbers, bold))


def _cells(artefact: Artefact, frame: pd.DataFrame, options: Answer) -> Iterator[pd.DataFrame]:
    for place, runs in frame.groupby(["dataset", "partition"], sort=False):
        dataset, partition = map(str, place)
        values = _values_at_common_seeds(artefact, runs)
        sent = summarise(runs, ["method"], "bytes_sent").set_index("method")["mean"]
        others = [str(name) for name in values if name not in options.labelled]
        choices = {
            budget: [name for name in others if sent[name] <= most]
            for budget, most in _BUDGETS.items()
        }
        choices[LABELLED] = [str(name) for name in values if name in options.labelled]
        for budget, allowed in choices.items():
            if allowed:
                found = candidates(values[allowed])
                found.insert(1, "bytes_sent", found["method"].map(sent))
                found.insert(0, "dataset", dataset)
                found.insert(1, "partition", partition)
                found.insert(2, "budget", budget)
                yield found


def _values_at_common_seeds(artefact: Artefact, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the metric by seed and method, at the seeds that all methods with a result have."""
    summarise(runs, ["method"], artefact.metric)  # refuses two runs in one place
    values = runs.pivot(index="seed", columns="method", values=artefact.metric)
    values = values[list(dict.fromkeys(runs["method"]))].dropna(axis="columns", how="all")
    whole = values.dropna()
    if whole.empty:
        place = ", ".join(f"{key} {runs.iloc[0][key]}" for key in ("dataset", "partition"))
        raise DataError(f"{artefact.name}: {place}: no seed has a result of all methods")
    return whole


def _printed_table(artefact: Artefact, numbers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per data set and partition, a column per budget."""
    several = numbers["dataset"].nunique() > 1
    rows = []
    for (dataset, partition), cell in numbers.groupby(["dataset", "partition"], sort=False):
        row = {"If you have": artefact.place_label(dataset, partition, several=several)}
        for budget in (*_BUDGETS, *([LABELLED] if LABELLED in set(numbers["budget"]) else [])):
            of_budget = cell[cell["budget"] == budget]
            row[_column_heading(budget, numbers)] = (
                _advice(artefact, of_budget) if len(of_budget) else "–"
            )
        rows.append(row)
    shown = pd.DataFrame(rows)
    *_, most, any_ = (_column_heading(budget, numbers) for budget in _BUDGETS)
    if shown[any_].equals(shown[most]):
        shown = shown.drop(columns=any_).rename(columns={most: most.replace(":", ", or more:")})
    return shown


def _column_heading(budget: str, numbers: pd.DataFrame) -> str:
    if budget == LABELLED:
        most = numbers.loc[numbers["budget"] == LABELLED, "bytes_sent"].max() / 1e6
        return f"{most:.1f} MB and labelled samples at the server: use"
    return "any number of bytes: use" if budget == "any" else f"up to {budget}: use"


def _advice(artefact: Artefact, found: pd.DataFrame) -> str:
    """Return the best method, or the first of those that may be."""
    left = found[found["result"] != "excluded"]
    named = [
        f"{artefact.label(row['method'])} {_score(artefact, row['mean'])}"
        for row in left.to_dict("records")
    ]
    if len(found) == 1:
        return f"only {named[0]}"
    if (left["result"] == "no test").any():
        return named[0]
    if len(named) == 1:
        return f"**{named[0]}**"
    if len(named) == _NAMED:
        return " or ".join(named)
    more, least = len(named) - _NAMED, _score(artefact, left["mean"].min())
    others = f"another, {least}" if more == 1 else f"{more} more, down to {least}"
    return f"{'; '.join(named[:_NAMED])}; or {others}"  # names may have commas


def _score(artefact: Artefact, mean: float) -> str:
    return number(mean, artefact.metric, percent=True, decimals=1)


def _per_cent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _caption_sentences(
    artefact: Artefact, frame: pd.DataFrame, numbers: pd.DataFrame, bold: bool
) -> tuple[str, ...]:
    seeds = numbers["n"]
    sentences = ["Bytes are what a client sends in the whole run"]
    if seeds.max() == 1:
        sentences.append("One seed: no test, and so no winner; shown is the best method")
    else:
        most = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()}–{seeds.max()}"
        sentences.append(
            f"Where several are named, the best is one of them with {_per_cent(1 - ALPHA)}"
            " confidence, in each cell by itself: a method is excluded if another that the cell"
            f" allows is above it by a one-sided paired t test over {most} seeds at"
            f" {_per_cent(ALPHA)}, divided by the number of others, so that one whose seeds differ"
            " much may be left though its mean is lower. A cell names the two with the highest"
            " means, the number of others, and the lowest of their means"
        )
        if bold:
            sentences.append("Bold: all others are excluded")
        sentences.append(
            "With so few seeds only clearly worse methods are excluded; methods named together need"
            " not be equally good"
        )
    lost = sorted(set(frame.loc[frame["diverged"], "method"].map(artefact.label)))
    if lost:
        sentences.append(f"Seeds at which a method diverged are left out: {'; '.join(lost)}")
    name = f"results/tables/{artefact.paper}/{artefact.scale}/{artefact.id}.csv"
    level = _per_cent(INTERVAL)
    sentences.append(
        f"`{name}` has every method's difference from the best mean, with its interval ({level},"
        " uncorrected), and the method that excludes it (`beaten_by`), with that comparison's p,"
        " multiplied by the number of others"
    )
    return tuple(sentences)
