"""Spearman's correlation of the orders of methods on two data sets, for each partition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.results.analyses.analysis import Analysis
from fedlogit.results.collect import collect, competitors, refuse_mixed

__all__ = ["analyse"]

_BEST = 3  # methods that are named
_BETWEEN_SEEDS = "ρ between seeds"


def analyse(artefact: Artefact) -> Analysis:
    """Return a row per partition and pair of data sets that both have it.

    Columns of the CSV: `partition`, `first` and `second` (data sets), `methods` (how many both
    have), `rho` (Spearman's rank correlation of the methods' means over seeds), `rho_low` and
    `rho_high` (the least and the largest of single seeds), `seeds_first` and `seeds_second` (the
    mean correlation of two seeds of one data set; NaN with a single seed), `best_first` and
    `best_second` (the three methods with the best means, with "; " between).

    Raises:
        FedlogitError: if no partition has two data sets with three methods.
    """
    frame = competitors(collect(artefact))
    refuse_mixed(frame, ("dataset", "partition", "method"))
    rows = list(_rows(frame, artefact.metric))
    if not rows:
        raise FedlogitError(
            f"{artefact.name}: no partition was run on two data sets with the same three methods"
        )
    numbers = pd.DataFrame(rows)
    sentences = (
        "Spearman's rank correlation between two data sets of the methods' means over seeds: 1 is"
        " the same order, 0 none in common, -1 the reverse",
        "The range is that of single seeds",
        "Between seeds: the mean correlation of two seeds of one data set, which is what noise"
        " leaves of 1",
    )
    right = ("Methods", "ρ", _BETWEEN_SEEDS)
    return Analysis(numbers, _printed_table(artefact, numbers), sentences, right=right)


def _rows(frame: pd.DataFrame, metric: str) -> Iterator[dict[str, Any]]:
    for partition, there in frame.groupby("partition", sort=False):
        for first, second in itertools.combinations(there["dataset"].drop_duplicates(), 2):
            pair = [_by_method(there, name, metric) for name in (first, second)]
            common = pair[0].index.intersection(pair[1].index)
            if len(common) < _BEST:
                continue
            left, right = (table.loc[common] for table in pair)
            seeds = [left[seed].corr(right[seed], "spearman") for seed in left if seed in right]
            yield {
                "partition": partition,
                "first": first,
                "second": second,
                "methods": len(common),
                "rho": left.mean(axis=1).corr(right.mean(axis=1), "spearman"),
                "rho_low": min(seeds, default=float("nan")),
                "rho_high": max(seeds, default=float("nan")),
                "seeds_first": _between_seeds(left),
                "seeds_second": _between_seeds(right),
                "best_first": _best_methods(left),
                "best_second": _best_methods(right),
            }


def _by_method(frame: pd.DataFrame, dataset: str, metric: str) -> pd.DataFrame:
    """Return a data set's metric, (methods, seeds), of methods that have every seed."""
    own = frame[frame["dataset"] == dataset]
    return own.pivot(index="method", columns="seed", values=metric).dropna()


def _between_seeds(table: pd.DataFrame) -> float:
    """Return the mean rank correlation of two seeds; NaN if there is one."""
    pairs = itertools.combinations(table.columns, 2)
    return pd.Series([table[a].corr(table[b], "spearman") for a, b in pairs], dtype=float).mean()


def _best_methods(table: pd.DataFrame) -> str:
    means = table.mean(axis=1).sort_values(ascending=False, kind="stable")
    return "; ".join(map(str, means.index[:_BEST]))


def _printed_table(artefact: Artefact, numbers: pd.DataFrame) -> pd.DataFrame:
    label = artefact.label
    rows = [
        {
            label("partition"): label(row["partition"]),
            "Data sets": f"{label(row['first'])}, {label(row['second'])}",
            "Methods": f"{row['methods']}",
            "ρ": f"{row['rho']:.2f} ({row['rho_low']:.2f} to {row['rho_high']:.2f})",
            _BETWEEN_SEEDS: ", ".join(
                "–" if pd.isna(row[key]) else f"{row[key]:.2f}"
                for key in ("seeds_first", "seeds_second")
            ),
            "Best on the first": _labels(artefact, row["best_first"]),
            "Best on the second": _labels(artefact, row["best_second"]),
        }
        for row in numbers.to_dict("records")
    ]
    return pd.DataFrame(rows)


def _labels(artefact: Artefact, methods: str) -> str:
    return "; ".join(map(artefact.label, methods.split("; ")))
