"""Values on an axis of a table: how they are compared, sorted and printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from numbers import Integral
from typing import Any

from fedlogit.spec import RunSpec

__all__ = ["comparable", "label_of", "run_place", "scalar"]


def comparable(value: object) -> object:
    """Return a number, also one that is written as text, as float; all else as text."""
    if isinstance(value, bool):
        return str(value)
    with suppress(TypeError, ValueError):
        return float(value)  # type: ignore[arg-type]
    return str(value)


def scalar(value: object) -> object:
    """Return a value on an axis as tables have it: a list as JSON, and None as "all"."""
    if value is None:
        return "all"
    return json.dumps(value) if isinstance(value, list | dict) else value


def run_place(spec: RunSpec, axes: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a run stands, each value as a scalar, also on axes that every run has.

    A run off the partition axis, such as the reference's, still has a partition.

    Args:
        spec: The run's.
        axes: Its values on the axes of a table or figure.
    """
    always = {"dataset": spec.dataset, "partition": spec.partition.name, "method": spec.method.name}
    return {axis: scalar(value) for axis, value in {**always, **axes}.items()}


def label_of(labels: Mapping[str, str], axis: str, value: object) -> str:
    """Return how a value is printed: by the label of ``axis=value``, else that of the value.

    Of a number without a label, thousands are grouped.
    """
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    text = f"{value:,}" if is_number else str(value)
    return labels.get(f"{axis}={value}", labels.get(str(value), text))
