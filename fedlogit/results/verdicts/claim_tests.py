"""How a claim is tested: what is compared with what, seed by seed.

``greater``: left is above right by more than a margin (which may be negative: "not more than 0.01
below"), or above ``times`` right. ``best``: left is above each of its rivals. ``alike``: left and
each of its rivals differ by less than a margin, whichever is ahead. ``shrinking``: the gap
left - right (or left itself, without a right) is smaller at the last value along an axis than at
the first. Gaps have signs, so that a loss is less than any gain; ``size: true`` compares
|left - right|, the sizes of the means over seeds.

Runs come as a frame with a row for every planned run; those that do not exist are `missing`. A
`Naming` says how the axes' values are called in the evidence.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fedlogit.errors import FedlogitError, shown, unknown
from fedlogit.papers.artefact import REFERENCE
from fedlogit.papers.claim_options import ANY, Comparison
from fedlogit.results.collect import axis_value_matches
from fedlogit.results.formatting import number
from fedlogit.results.statistics.means import INSIDE, ROUNDING, p_above, paired_interval
from fedlogit.results.verdicts.claim_names import Naming

__all__ = ["TESTS", "Evidence", "cells", "dataset_of", "pooled"]


@dataclass(frozen=True)
class _Side:
    """A quantity by seed: what was run, and the seeds at which it is planned.

    `lacks` says which runs have no such quantity, if some have not.
    """

    values: pd.Series
    planned: frozenset[int]
    lacks: str = ""

    def __sub__(self, other: _Side) -> _Side:
        """Return the difference at the seeds that both have."""
        common = sorted(set(self.values.index) & set(other.values.index))
        difference = self.values.loc[common] - other.values.loc[common]
        return _Side(difference, self.planned & other.planned, self.lacks or other.lacks)


@dataclass(frozen=True)
class Evidence:
    """One comparison: what was compared, in numbers, and the difference that should be positive.

    Attributes:
        text: For people.
        differences: By seed; NaN where a run diverged.
        margin: What they should exceed.
        planned: At how many seeds it is planned.
        rival: For ``best``, which; comparisons with one rival are pooled.
        name: What was compared, without numbers.
        lacks: Which runs do not have the metric, in words; "" if all that were run have it.
    """

    text: str
    differences: pd.Series
    margin: float
    planned: int
    rival: str = ""
    name: str = ""
    lacks: str = ""

    @property
    def differences_and_margin(self) -> tuple[np.ndarray, float]:
        """Return what `fedlogit.results.verdicts.rules.decide` needs."""
        return self.differences.to_numpy(dtype=float), self.margin

    @property
    def whole(self) -> bool:
        """Return whether it was run at every planned seed."""
        return 0 < self.planned == len(self.differences)

    @property
    def agrees(self) -> bool:
        """Return whether the mean points the claimed way, however noisy."""
        mean = float(self.differences.mean(skipna=False))  # NaN of none is not above anything
        return mean > self.margin + ROUNDING

    @property
    def description(self) -> str:
        """Return it for people, with a word where the mean points the other way."""
        contrary = not (self.agrees or self.differences.empty)
        return f"{self.text}, not as claimed" if contrary else self.text


def pooled(found: Sequence[Evidence]) -> dict[str, tuple[np.ndarray, float]]:
    """Return, by rival, the mean over its cells of the differences, seed by seed, and the margin.

    Only seeds that every cell has count, so that each mean is over the same cells.
    """
    tests = {}
    for rival in dict.fromkeys(evidence.rival for evidence in found):
        of_rival = [evidence for evidence in found if evidence.rival == rival]
        table = pd.concat([e.differences for e in of_rival], axis=1, join="inner").astype(float)
        tests[rival] = (table.mean(axis=1, skipna=False).to_numpy(), of_rival[0].margin)
    return tests


def _axis_values(axis: str, options: Comparison, frame: pd.DataFrame) -> list[Any]:
    """Return an axis's values: those that `where` lists, or those planned for the left side."""
    listed = options.where.get(axis)
    if isinstance(listed, list):
        return listed
    kept = _selected_runs(frame, {**options.where, **options.left})
    return list(kept[axis].drop_duplicates()) if axis in kept else [_known_axis(axis, frame)]


def cells(options: Comparison, frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield each combination of the axes in `over`.

    Values that `where` lists are combined with whatever is planned; of other axes only combinations
    that are planned count, since a dataset may have partitions of its own.
    """
    values = [_axis_values(axis, options, frame) for axis in options.over]
    free = [axis for axis in options.over if not isinstance(options.where.get(axis), list)]
    left = _selected_runs(frame, {**options.where, **options.left})
    planned = set(left[free].itertuples(index=False, name=None))
    for combination in itertools.product(*values):
        cell = dict(zip(options.over, combination, strict=True))
        if not free or tuple(cell[axis] for axis in free) in planned:
            yield cell


def dataset_of(options: Comparison, cell: Mapping[str, Any], frame: pd.DataFrame) -> str:
    """Return the data set of a cell; nothing if its planned runs are on several, or there are none.

    If the claim names it, no run need be planned: a scale may leave out a listed partition.
    """
    conditions = {**options.where, **options.left, **cell}
    named = conditions.get("dataset")
    if isinstance(named, str):
        return named
    planned = _selected_runs(frame, conditions)
    names = list(planned["dataset"].unique()) if "dataset" in planned else []
    return str(names[0]) if len(names) == 1 else ""


def _known_axis(axis: str, frame: pd.DataFrame) -> str:
    """Return the axis if the runs have it."""
    if axis not in frame:
        raise unknown("axis", axis, frame.columns)
    return axis


def _selected_runs(frame: pd.DataFrame, conditions: Mapping[str, Any]) -> pd.DataFrame:
    """Return the planned runs that satisfy all conditions."""
    for axis, value in conditions.items():
        if axis == "metric" or value == ANY:
            continue
        wanted = value if isinstance(value, list) else [value]
        frame = frame[axis_value_matches(frame[_known_axis(axis, frame)], wanted)]
    return frame


def _side(
    options: Comparison, cell: Mapping[str, Any], side: Mapping[str, Any], frame: pd.DataFrame
) -> _Side:
    """Return one side's metric by seed; runs that do not have it are as if not run.

    Raises:
        FedlogitError: if two runs of a seed match, so that the claim is too wide.
    """
    conditions = {**options.where, **cell, **side}
    runs = _selected_runs(frame, conditions).set_index("seed")
    if runs.index.has_duplicates:
        raise FedlogitError(
            f"several runs of one seed match {conditions}; narrow it or name an axis in 'over'"
        )
    metric = side.get("metric", options.metric)
    values = runs[metric]
    run = ~runs["missing"] & (values.notna() | runs["diverged"])
    without = runs[[metric in lacks for lacks in runs["lacks"]]]
    lacks = _lacking(without, metric) or _ended(runs[~run & ~runs["missing"]], metric)
    return _Side(values[run], frozenset(runs.index), lacks)


def _lacking(runs: pd.DataFrame, metric: str) -> str:
    """Say which runs lack a metric, as one that only other methods log; "" if there are none."""
    if runs.empty:
        return ""
    names = sorted(runs["method"].map(str).unique()) if "method" in runs else []
    return f"runs{' of ' if names else ''}{', '.join(names)} lack the metric {shown(metric)}"


def _ended(runs: pd.DataFrame, metric: str) -> str:
    """Say that runs are too short for a metric such as ``accuracy@10``; "" if there are none."""
    _, _, when = metric.partition("@")
    return f"runs end before round {when}" if when and not runs.empty else ""


def _evidence_against(
    options: Comparison,
    cell: Mapping[str, Any],
    right: Mapping[str, Any],
    frame: pd.DataFrame,
    naming: Naming,
) -> Evidence:
    """Compare the left side with one right side, seed by seed."""
    factor = "" if options.times == 1 else f"{options.times:g} × "
    names = f"{_where(cell, naming)}{naming(options.left)} vs {factor}{naming(right)}"
    ours, theirs = (_side(options, cell, side, frame) for side in (options.left, right))
    theirs = replace(theirs, values=options.times * theirs.values)
    return _evidence_of_sides(names, " vs ", ours, theirs, options)


def _where(cell: Mapping[str, Any], naming: Naming) -> str:
    return f"{naming(cell)}: " if cell else ""


def _evidence_of_sides(
    name: str, between: str, first: _Side, second: _Side, options: Comparison
) -> Evidence:
    """Return first - second with both means in words."""
    difference = first - second
    seeds, planned = difference.values.index, len(difference.planned)
    lacks = difference.lacks
    nothing = f"{name}: {lacks or ('not run' if planned else 'not planned')}"
    found = Evidence(nothing, difference.values, options.margin, planned, name=name, lacks=lacks)
    if seeds.empty:
        return found
    means = (number(side.values.loc[seeds].mean(), options.metric) for side in (first, second))
    n = f"{len(seeds)}" + (f" of {planned}" if len(seeds) < planned else "")
    return replace(
        found, text=f"{name}: {between.join(means)} (n={n}{_difference_in_numbers(found, options)})"
    )


def _difference_in_numbers(found: Evidence, options: Comparison) -> str:
    """Return the mean difference, its 90 % interval and the p value, where there are seeds."""
    differences, _ = found.differences_and_margin
    if len(differences) < 2:
        return ""
    mean, low, high = (
        number(value, options.metric)
        for value in (float(np.mean(differences)), *paired_interval(differences, INSIDE))
    )
    return f", {mean} [{low} to {high}], p={p_above(*found.differences_and_margin):.2g}"


def _evidence_for_greater(
    options: Comparison, cell: dict[str, Any], frame: pd.DataFrame, naming: Naming
) -> list[Evidence]:
    assert options.right is not None  # as `check_test` says
    return [_evidence_against(options, cell, options.right, frame, naming)]


def _rivals(options: Comparison, frame: pd.DataFrame, naming: Naming) -> dict[str, dict[str, Any]]:
    """Return the conditions on each rival by its name: of those planned, whether or not run.

    They are those of a list on the right side, the right side itself, or all other methods.
    """
    rest = dict(options.right or {})
    lists = [axis for axis, value in rest.items() if isinstance(value, list)]
    if rest and not lists:
        return {naming(rest): rest}
    axis = lists[0] if lists else "method"
    others = frame[_known_axis(axis, frame)].drop_duplicates()
    values = rest.pop(axis, None) or [v for v in others if v not in (options.left[axis], REFERENCE)]
    names = [naming({axis: value}) for value in values]
    if len(set(names)) < len(names):  # two values may share a label
        names = [str(value) for value in values]
    return {name: {**rest, axis: value} for name, value in zip(names, values, strict=True)}


def _evidence_for_best(
    options: Comparison, cell: dict[str, Any], frame: pd.DataFrame, naming: Naming
) -> list[Evidence]:
    """Compare with each rival; all must be beaten, so no correction for their number is due."""
    return [
        replace(_evidence_against(options, cell, rival, frame, naming), rival=name)
        for name, rival in _rivals(options, frame, naming).items()
    ]


def _evidence_for_alike(
    options: Comparison, cell: dict[str, Any], frame: pd.DataFrame, naming: Naming
) -> list[Evidence]:
    """Compare with each rival, both ways: two one-sided tests make the test of equivalence."""
    below = options.model_copy(update={"margin": -options.margin})
    found = []
    for name, rival in _rivals(options, frame, naming).items():
        turned = below.model_copy(update={"left": rival})
        not_below = _evidence_against(below, cell, rival, frame, naming)
        not_above = _evidence_against(turned, cell, options.left, frame, naming)
        found += [
            replace(not_below, rival=f"{name}, not below"),
            replace(not_above, rival=f"{name}, not above"),
        ]
    return found


def _evidence_for_shrinking(
    options: Comparison, cell: dict[str, Any], frame: pd.DataFrame, naming: Naming
) -> list[Evidence]:
    assert options.along is not None
    values = _axis_values(options.along, options, frame)
    if len(values) < 2:
        text = f"two values of the axis {options.along}: not planned"
        return [Evidence(text, pd.Series(dtype=float), options.margin, planned=0)]
    first, last = (
        _gap(options, {**cell, options.along: value}, frame) for value in (values[0], values[-1])
    )
    start, end = (naming({options.along: value}) for value in (values[0], values[-1]))
    name = f"{_where(cell, naming)}{_gap_name(options, naming)}from {start} to {end}"
    return [_evidence_of_sides(name, " → ", first, last, options)]


def _gap_name(options: Comparison, naming: Naming) -> str:
    """Name left - right, or the left side alone; nothing where the cell says what that is."""
    left, right = (naming(side or {}) for side in (options.left, options.right))
    if not right:
        return f"{left}, " if left else ""
    if not left:
        return f"{'distance' if options.size else 'difference'} from {right}, "
    return f"|{left} − {right}|, " if options.size else f"{left} − {right}, "


def _gap(options: Comparison, cell: Mapping[str, Any], frame: pd.DataFrame) -> _Side:
    """Return left - right by seed, or left alone.

    A gap's `size` is that of its mean over seeds: seeds of opposite sign cancel. The mean of the
    seeds' sizes would be large wherever seeds scatter, also without any gap.
    """
    left = _side(options, cell, options.left, frame)
    if options.right is None:
        return left
    gap = left - _side(options, cell, options.right, frame)
    return replace(gap, values=-gap.values) if options.size and gap.values.mean() < 0 else gap


_Test = Callable[[Comparison, dict[str, Any], pd.DataFrame, Naming], list[Evidence]]

TESTS: dict[str, _Test] = {
    "greater": _evidence_for_greater,
    "best": _evidence_for_best,
    "alike": _evidence_for_alike,
    "shrinking": _evidence_for_shrinking,
}
