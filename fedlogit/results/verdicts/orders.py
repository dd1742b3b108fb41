"""Whether methods come in the paper's order: every two of a table whose published numbers differ.

Runs at a reduced scale say nothing about a paper's numbers, but something about their order, which
is mostly what the paper is about. The rule is `ORDER_RULE`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pandas as pd

from fedlogit.results.formatting import read_csv
from fedlogit.results.statistics.means import (
    ALPHA,
    INSIDE,
    ROUNDING,
    p_above,
    p_below,
    paired_interval,
)
from fedlogit.results.verdicts.counterparts import Counterpart, Matched
from fedlogit.results.verdicts.number_rows import PublishedNumber
from fedlogit.results.verdicts.rules import REPRODUCED, is_exact, margin_unit

__all__ = ["ORDERS", "ORDER_RULE", "Order", "pairwise_orders", "read_orders"]


class Order(StrEnum):
    """How two methods stand to each other in our runs, next to the paper's."""

    SAME = "same order"
    OPPOSITE = "opposite order"
    NOT_DISTINGUISHED = "not distinguished"
    SINGLE_SAME = "single run, same"
    SINGLE_OPPOSITE = "single run, opposite"
    SINGLE_EQUAL = "single run, equal"


ORDERS = tuple(Order)
ORDER_RULE = (
    "A pair is any two methods, or settings of one, whose published numbers in the same table, data"
    " set, partition and metric differ by more than 1 point, whatever their spread over the paper's"
    " seeds. It is in the *same order* if ours"
    " differ in the paper's direction by a one-sided paired t test over seeds at 5 %, in the"
    " *opposite order* if they differ in the other direction by the same test, and else *not"
    " distinguished*. A single run has only a direction. Counted bytes are left out. There is no"
    " correction for the number of pairs, and pairs are not independent: they share methods and"
    " seeds, and a method that is far behind all others makes many pairs easy."
)

_COLUMNS = [
    *("table", "dataset", "partition", "where", "metric", "first", "second"),
    *("published", "ours", "low", "high", "n", "order", "scale"),
]
_NUMBERS = ("published", "ours", "low", "high", "n")


@dataclass(frozen=True)
class _Side:
    """One method of a pair: its published number, and our runs of it."""

    number: PublishedNumber
    ours: Counterpart

    @property
    def values(self) -> pd.Series:
        """Our metric by seed; NaN where a run diverged."""
        return self.ours.runs.set_index("seed")[self.number["metric"]].astype(float)

    @property
    def place(self) -> tuple[str, ...]:
        """What both methods of a pair share: the place of the number, and the table of ours."""
        of = self.number
        place = (of["table"], of["dataset"], of["partition"], of["where"], of["metric"])
        return (*place, self.ours.artefact.id)


def pairwise_orders(matched: Matched) -> pd.DataFrame:
    """Return a row for each pair of methods that have runs of the same seeds.

    Args:
        matched: Published numbers and their runs, as from
            `fedlogit.results.verdicts.counterparts.matched_numbers`.

    Returns:
        The place of the two numbers; `first`, the method with the larger published number, and
        `second`; the difference of first and second, `published` and of `ours` (mean over `n`
        seeds), with its 90 % interval from `low` to `high`; `order` and `scale`.
    """
    sides: dict[tuple[str, ...], list[_Side]] = {}
    for number, ours in matched:
        if ours and not is_exact(number["metric"]):
            side = _Side(number, ours)
            sides.setdefault(side.place, []).append(side)
    pairs = (pair for of_place in sides.values() for pair in _pairs_told_apart(of_place))
    rows = pd.DataFrame([_row(*pair) for pair in pairs], columns=_COLUMNS)
    return rows[rows["n"] > 0].reset_index(drop=True)


def _pairs_told_apart(sides: Iterable[_Side]) -> Iterator[tuple[_Side, _Side]]:
    """Yield any two numbers of one place that differ by more than a point, the larger first."""
    ranked = sorted(sides, key=lambda side: -side.number["mean"])
    for first, second in itertools.combinations(ranked, 2):
        least = REPRODUCED * margin_unit(first.number["metric"], second.number["mean"])
        if first.number["mean"] - second.number["mean"] > least + ROUNDING:
            yield first, second


def _row(first: _Side, second: _Side) -> dict[str, object]:
    """Compare ours seed by seed."""
    differences = (first.values - second.values).loc[
        first.values.index.intersection(second.values.index)
    ]
    of = differences.to_numpy()
    low, high = paired_interval(of, INSIDE)
    number = first.number
    return {
        "table": number["table"],
        "dataset": number["dataset"],
        "partition": number["partition"],
        "where": number["where"],
        "metric": number["metric"],
        "first": number["method"],
        "second": second.number["method"],
        "published": number["mean"] - second.number["mean"],
        "ours": differences.mean(skipna=False),
        "low": low,
        "high": high,
        "n": len(of),
        "order": _order(of),
        "scale": first.ours.artefact.scale,
    }


def _order(differences: np.ndarray) -> Order:
    """Return which order differences, one per seed, show; NaN, of a run that diverged, shows none.

    Args:
        differences: Of the method with the larger published number and the other, (n,).
    """
    if len(differences) == 1 and not np.isnan(differences[0]):
        if abs(differences[0]) <= ROUNDING:
            return Order.SINGLE_EQUAL
        return Order.SINGLE_SAME if differences[0] > 0 else Order.SINGLE_OPPOSITE
    if p_above(differences) < ALPHA:
        return Order.SAME
    return Order.OPPOSITE if p_below(differences) < ALPHA else Order.NOT_DISTINGUISHED


def read_orders(path: Path) -> pd.DataFrame:
    """Return the pairs in a file that `write_summary` wrote.

    Raises:
        DataError: if it is missing, no table, or lacks a column.
    """
    kinds = {name: float if name in _NUMBERS else str for name in _COLUMNS} | {"n": int}
    rows = read_csv(path, _COLUMNS, kinds)
    return rows.fillna({name: "" for name in _COLUMNS if name not in _NUMBERS})
