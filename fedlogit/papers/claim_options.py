"""The options of a claim, and which of them each kind takes.

`fedlogit.results.verdicts.claim_tests` says what the kinds are; a wrong claim is refused when its
paper's file is read.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fedlogit.errors import FedlogitError
from fedlogit.frozen_config import FrozenConfig

__all__ = ["ANY", "Comparison", "check_test"]

ANY = "*"
"""Lifts a condition."""

_TEST_OF_OPTION = {"along": "shrinking", "size": "shrinking", "times": "greater"}


class Comparison(FrozenConfig):
    """The options of a claim.

    Attributes:
        metric: What is compared; `left` and `right` may each name another one.
        where: Conditions on the axes, as axis: value or axis: [values].
        left: Conditions on the left side; they win over `where`, and ``"*"`` lifts one.
        right: The same for the right side. For ``best`` and ``alike``, one axis lists the rivals;
            without it they are all other methods except the reference. For ``alike`` it may also
            be a single one, or the same runs by another metric.
        over: The claim must hold for each combination of these axes' values: those `where` lists,
            or those that are planned.
        along: For ``shrinking``, the axis along which the gap should shrink.
        size: For ``shrinking``, whether the gap is |left - right| of the means over seeds, for
            claims about how far apart two things are.
        margin: What the difference should exceed; for ``alike``, what it should stay below.
        times: For ``greater``, what the right side is multiplied by, for claims about ratios.
    """

    metric: str = "accuracy"
    where: dict[str, Any] = Field(default_factory=dict)
    left: dict[str, Any]
    right: dict[str, Any] | None = None
    over: tuple[str, ...] = ()
    along: str | None = None
    size: bool = False
    margin: float = 0.0
    times: float = Field(default=1.0, gt=0)

    def metrics(self) -> set[str]:
        """Return all metrics that the comparison needs."""
        sides = [self.left, self.right or {}]
        return {self.metric, *(side["metric"] for side in sides if "metric" in side)}


def check_test(test: str, options: Comparison, where: str) -> None:
    """Check that a claim has the options that its kind needs, and no others.

    Raises:
        FedlogitError: one line that begins with `where`.
    """
    for key, only in _TEST_OF_OPTION.items():
        if key in options.model_fields_set and test != only:
            raise FedlogitError(
                f"{where}: test {test!r} has no option {key!r}, which is of {only!r} alone;"
                " leave it out"
            )
    if options.left == options.right:
        raise FedlogitError(
            f"{where}: right = {options.right!r}: is the same as left; give what that is"
            " compared with"
        )
    if test == "shrinking":
        _check_shrinking(options, where)
        return
    if test == "greater":
        if options.right is None:
            raise FedlogitError(f"{where}: key 'right' is missing: 'greater' compares two sides")
        return
    if test == "alike" and options.margin <= 0:
        raise FedlogitError(
            f"{where}: margin = {options.margin}: should be above 0 for 'alike', as differences"
            " stay below it"
        )
    _check_rivals(test, options, where)


def _check_shrinking(options: Comparison, where: str) -> None:
    if options.along is None:
        raise FedlogitError(f"{where}: key 'along' is missing: along which axis it is 'shrinking'")
    if options.size and options.right is None:
        raise FedlogitError(
            f"{where}: size = True: has no effect without 'right'; it is of |left - right|"
        )


def _check_rivals(test: str, options: Comparison, where: str) -> None:
    """Check that the rivals are one list, or all other methods than the left side's."""
    if options.right is None:
        if "method" not in options.left:
            raise FedlogitError(
                f"{where}: key 'left.method' is missing: without 'right', {test!r} compares with"
                " all other methods"
            )
        return
    lists = [axis for axis, value in options.right.items() if isinstance(value, list)]
    if len(lists) > 1 or (test == "best" and not lists):
        raise FedlogitError(
            f"{where}: right = {options.right!r}: should have one axis with a list of rivals for"
            f" {test!r}, such as method: [average, uwa]"
        )
