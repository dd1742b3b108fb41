"""Claims of a paper's file, checked when it is read: their options, axes, metrics and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedlogit.errors import FedlogitError
from fedlogit.papers.axis_values import comparable
from fedlogit.papers.claim_options import ANY, Comparison, check_test
from fedlogit.papers.grids import axes_of, values_of
from fedlogit.papers.metric_names import check_metric
from fedlogit.papers.option_checks import check_known
from fedlogit.papers.schema import Paper

__all__ = ["check_claims", "check_value", "claim_metrics", "conditions"]


def check_claims(paper: Paper) -> None:
    """Check every claim, as the paper has it and as each scale changes it.

    Raises:
        FedlogitError: one line with the key, the value and the nearest that would be right.
    """
    for where, test, source, given in _stated_claims(paper):
        options = Comparison.read(given, where)
        _check_metrics(paper, options, where)
        if "accuracy" in options.metric and abs(options.margin) >= 1:
            raise FedlogitError(
                f"{where}: margin = {options.margin}: should be a fraction, such as 0.05"
                " for 5 points"
            )
        check_test(test, options, where)
        axes, values = axes_of(paper, source), values_of(paper, source)
        for key, axis in [("along", options.along), *(("over", axis) for axis in options.over)]:
            if axis is not None:
                check_known(f"{where}.{key}", axis, axes, "axis")
        for side, axis, value in _conditions(options):
            if axis != "metric":
                check_known(f"{where}.{side}", axis, axes, "axis")
                check_value(f"{where}.{side}.{axis}", value, values.get(axis))


def claim_metrics(paper: Paper) -> set[str]:
    """Return the metrics that claims compare."""
    claims = (Comparison.read(given, where) for where, _, _, given in _stated_claims(paper))
    return {name for claim in claims for name in claim.metrics()}


def conditions(paper: Paper) -> Iterator[tuple[str, str, str, Any]]:
    """Yield every condition of a claim: its key, the table or figure it is of, axis and value."""
    for where, _, source, given in _stated_claims(paper):
        for side, axis, value in _conditions(Comparison.read(given, where)):
            yield f"{where}.{side}", source, axis, value


def _stated_claims(paper: Paper) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield for each claim, also as scales change it, its key, test, source and options."""
    for key, claim in paper.claims.items():
        yield f"claims.{key}.options", claim.test, claim.source, claim.options
    for name, scale in paper.scales.items():
        stated = paper.claims_at(name)
        for key, claim in ((key, stated[key]) for key in scale.claims):
            yield f"scales.{name}.claims.{key}.options", claim.test, claim.source, claim.options


def _conditions(options: Comparison) -> Iterator[tuple[str, str, Any]]:
    """Yield a comparison's conditions: the side, the axis and its value."""
    for side, given in _sides(options).items():
        yield from ((side, axis, value) for axis, value in given.items())


def _sides(options: Comparison) -> dict[str, dict[str, Any]]:
    return {"where": options.where, "left": options.left, "right": options.right or {}}


def _check_metrics(paper: Paper, options: Comparison, where: str) -> None:
    """Check the metrics of both sides, and that there is none among the conditions on both."""
    if "metric" in options.where:
        raise FedlogitError(
            f"{where}.where.metric = {options.where['metric']!r}: is no condition; give it as"
            " the option 'metric'"
        )
    check_metric(f"{where}.metric", options.metric, paper.labels)
    for side, conditions in _sides(options).items():
        metric = conditions.get("metric", options.metric)
        if not isinstance(metric, str):
            raise FedlogitError(
                f"{where}.{side}.metric = {metric!r}: should be one metric, such as accuracy"
            )
        check_metric(f"{where}.{side}.metric", metric, paper.labels)


def check_value(where: str, value: Any, values: list[Any] | None) -> None:
    """Check that an axis has a value, or each of a list; `values` is None where none are known.

    Raises:
        FedlogitError: with the key, the value and the nearest that there is.
    """
    if value == []:
        raise FedlogitError(f"{where} = []: should have a value at least")
    if values is None:
        return
    known = {comparable(one) for one in values}
    for one in value if isinstance(value, list) else [value]:
        if one != ANY and comparable(one) not in known:
            check_known(where, str(one), set(map(str, values)), "value")
