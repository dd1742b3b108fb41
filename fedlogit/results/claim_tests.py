"""How a claim is tested: what is compared with what, seed by seed.

``greater``: left is above right by more than a margin (which may be negative: "not more than 0.01
below"). ``best``: left is above each of its rivals. ``shrinking``: the gap between left and right
(or left itself, without a right) is smaller at the last value along an axis than at the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from fedlogit.component import Part
from fedlogit.errors import FedlogitError, unknown
from fedlogit.results.artefact import REFERENCE
from fedlogit.results.text import number
from fedlogit.results.verdict import decide

__all__ = ["TESTS", "Comparison", "Evidence", "cells"]

ANY = "*"


class Comparison(Part):
    """The options of a claim.

    Attributes:
        metric: What is compared; `left` and `right` may each name another one.
        where: Conditions on the axes, as axis: value or axis: [values].
        left: Conditions on the left side; they win over `where`, and ``"*"`` lifts one.
        right: The same for the right side. For ``best``, one axis lists the rivals; without it
            they are all other methods except the reference.
        over: The claim must hold for each combination of these axes' values: those `where` lists,
            or those that were run.
        along: For ``shrinking``, the axis along which the gap should shrink.
        margin: What the difference should exceed.
    """

    metric: str = "accuracy"
    where: dict[str, Any] = Field(default_factory=dict)
    left: dict[str, Any]
    right: dict[str, Any] | None = None
    over: tuple[str, ...] = ()
    along: str | None = None
    margin: float = 0.0

    def metrics(self) -> set[str]:
        """Return all metrics that the comparison needs."""
        sides = [self.left, self.right or {}]
        return {self.metric, *(side["metric"] for side in sides if "metric" in side)}


@dataclass(frozen=True)
class Evidence:
    """One comparison: what was compared, in numbers, and the difference that should be positive."""

    text: str
    differences: np.ndarray
    margin: float

    @property
    def result(self) -> str:
        """Return the outcome of the test."""
        return decide(self.differences, self.margin)

    @property
    def agrees(self) -> bool:
        """Return whether the mean points the claimed way, however noisy."""
        return len(self.differences) > 0 and float(self.differences.mean()) > self.margin


def _axis_values(axis: str, options: Comparison, frame: pd.DataFrame) -> list[Any]:
    """Return an axis's values: those that `where` lists, or those that were run on the left."""
    listed = options.where.get(axis)
    if isinstance(listed, list):
        return listed
    kept = _select(frame, {**options.where, **options.left})
    return list(kept[axis].drop_duplicates()) if axis in kept else [_axis(axis, frame)]


def cells(options: Comparison, frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield each combination of the axes in `over`.

    Values that `where` lists are combined with whatever was run; of other axes only combinations
    that were run count, since a dataset may have partitions of its own.
    """
    values = [_axis_values(axis, options, frame) for axis in options.over]
    free = [axis for axis in options.over if not isinstance(options.where.get(axis), list)]
    left = _select(frame, {**options.where, **options.left})
    run = set(left[free].itertuples(index=False, name=None))
    for combination in itertools.product(*values):
        cell = dict(zip(options.over, combination, strict=True))
        if not free or tuple(cell[axis] for axis in free) in run:
            yield cell


def _axis(axis: str, frame: pd.DataFrame) -> str:
    """Return the axis if the runs have it."""
    if axis not in frame:
        raise unknown("axis", axis, frame.columns)
    return axis


def _select(frame: pd.DataFrame, conditions: Mapping[str, Any]) -> pd.DataFrame:
    """Return the runs that satisfy all conditions."""
    for axis, value in conditions.items():
        if axis == "metric" or value == ANY:
            continue
        wanted = {str(v) for v in (value if isinstance(value, list) else [value])}
        frame = frame[frame[_axis(axis, frame)].astype(str).isin(wanted)]
    return frame


def _series(
    options: Comparison, cell: Mapping[str, Any], side: Mapping[str, Any], frame: pd.DataFrame
) -> pd.Series:
    """Return one side's metric by seed; runs too short to have it are as if not run.

    Raises:
        FedlogitError: if two runs of a seed match, so that the claim is too wide.
    """
    conditions = {**options.where, **cell, **side}
    runs = _select(frame, conditions).set_index("seed")
    if runs.index.has_duplicates:
        raise FedlogitError(
            f"several runs of one seed match {conditions}; narrow it or name an axis in 'over'"
        )
    metric = side.get("metric", options.metric)
    return runs.loc[runs[metric].notna() | runs["diverged"], metric]


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(str(value) for value in values.values() if value != ANY)


def _against(
    options: Comparison, cell: Mapping[str, Any], right: Mapping[str, Any], frame: pd.DataFrame
) -> Evidence:
    """Compare the left side with one right side, seed by seed."""
    ours = _series(options, cell, options.left, frame)
    theirs = _series(options, cell, right, frame)
    ours, theirs = _paired(ours, theirs)
    where = f"{_named(cell)}: " if cell else ""
    names = f"{where}{_named(options.left)} vs {_named(right)}"
    differences = (ours - theirs).to_numpy()
    if not len(differences):
        return Evidence(f"{names} not run", differences, options.margin)
    means = f"{number(ours.mean(), options.metric)} vs {number(theirs.mean(), options.metric)}"
    return Evidence(f"{names} {means} (n={len(differences)})", differences, options.margin)


def _paired(*sides: pd.Series) -> list[pd.Series]:
    """Return the sides at the seeds that all of them have."""
    common = sorted(set.intersection(*(set(side.index) for side in sides)))
    return [side.loc[common] for side in sides]


def _greater(options: Comparison, cell: dict[str, Any], frame: pd.DataFrame) -> list[Evidence]:
    if options.right is None:
        raise FedlogitError("test 'greater' needs 'right'")
    return [_against(options, cell, options.right, frame)]


def _best(options: Comparison, cell: dict[str, Any], frame: pd.DataFrame) -> list[Evidence]:
    """Compare with each rival; all must be beaten, so no correction for their number is due."""
    rest = dict(options.right or {})
    lists = [axis for axis, value in rest.items() if isinstance(value, list)]
    if options.right is not None and len(lists) != 1:
        raise FedlogitError("test 'best': 'right' needs one axis with a list of rivals")
    axis = lists[0] if lists else "method"
    others = frame[_axis(axis, frame)].drop_duplicates()
    rivals = rest.pop(axis, None) or [v for v in others if v not in (options.left[axis], REFERENCE)]
    return [_against(options, cell, {**rest, axis: rival}, frame) for rival in rivals]


def _shrinking(options: Comparison, cell: dict[str, Any], frame: pd.DataFrame) -> list[Evidence]:
    if options.along is None:
        raise FedlogitError("test 'shrinking' needs 'along'")
    values = _axis_values(options.along, options, frame)
    if len(values) < 2:
        return [Evidence(f"fewer than two values of {options.along} not run", np.array([]), 0.0)]
    ends = [
        _gap(options, {**cell, options.along: value}, frame) for value in (values[0], values[-1])
    ]
    first, last = _paired(*ends)
    where = f"{_named(cell)}: " if cell else ""
    text = f"{where}from {values[0]} to {values[-1]}"
    if not len(first):
        return [Evidence(f"{text} not run", np.array([]), options.margin)]
    means = f"{number(first.mean(), options.metric)} → {number(last.mean(), options.metric)}"
    differences = (first - last).to_numpy()
    return [Evidence(f"{text}: {means} (n={len(first)})", differences, options.margin)]


def _gap(options: Comparison, cell: Mapping[str, Any], frame: pd.DataFrame) -> pd.Series:
    """Return |left - right| by seed, or left alone."""
    left = _series(options, cell, options.left, frame)
    if options.right is None:
        return left
    left, right = _paired(left, _series(options, cell, options.right, frame))
    return (left - right).abs()


TESTS: dict[str, Callable[[Comparison, dict[str, Any], pd.DataFrame], list[Evidence]]] = {
    "greater": _greater,
    "best": _best,
    "shrinking": _shrinking,
}
