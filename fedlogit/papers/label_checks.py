"""Labels of a paper's file: each method that is shown has one, and each names something there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from fedlogit import dotted_keys
from fedlogit.component import parse_call
from fedlogit.errors import FedlogitError, did_you_mean
from fedlogit.frozen_config import FrozenConfig, model_in
from fedlogit.papers.axis_values import scalar
from fedlogit.papers.claim_checks import claim_metrics
from fedlogit.papers.grids import values_elsewhere, values_of
from fedlogit.papers.metric_names import KNOWN_METRICS
from fedlogit.papers.option_checks import check_known, option_metrics, settings_of
from fedlogit.papers.schema import Paper
from fedlogit.spec import RunSpec

__all__ = ["check_labels"]


def check_labels(paper: Paper) -> None:
    """Refuse a method of a table or figure without a label, and a label that names nothing.

    A label may name the paper, an axis, a metric, a value, or ``axis=value``. Values of a method's
    parameters (``method.rule=median``) are left to `fedlogit.papers.component_checks`.

    Raises:
        FedlogitError: with the label to add, or the nearest name that there is.
    """
    _check_methods_have_labels(paper)
    values = _values(paper)
    names = {paper.paper, *values}.union(*values.values())
    for label in paper.labels:
        axis, equals, value = label.partition("=")
        is_parameter = equals and axis in values and axis.startswith("method.")
        if label.partition("@")[0] in values["metric"] or is_parameter:
            continue
        if equals and axis in values:
            check_known(f"labels.{label}", value, values[axis] | {"all"}, f"value of {axis}")
        elif label not in names:
            hint = did_you_mean(label, names) or "; leave it out"
            raise FedlogitError(
                f"labels: {label!r} is no axis, value on an axis, axis=value or metric in this"
                f" file{hint}"
            )


def _check_methods_have_labels(paper: Paper) -> None:
    scaled = [entry for scale in paper.scales.values() for entry in scale.artefacts.values()]
    grids = [grid for entry in paper.artefacts.values() for grid in entry.grid or []]
    grids += [grid for entry in scaled for grid in (*(entry.grid or []), entry.axes)]
    grids += [scale.axes for scale in paper.scales.values()]
    for method in (method for grid in grids for method in grid.get("method", [])):
        name = str(method).partition("(")[0]
        if name in paper.methods and not {name, method} & paper.labels.keys():
            raise FedlogitError(
                f"labels: the method {name!r} has no name to print; add a line such as"
                f" '{name}: {name.replace('_', ' ').capitalize()}'"
            )


def _values(paper: Paper) -> dict[str, set[str]]:
    """Return the values of each axis and setting that the file names, as texts."""
    found: dict[str, set[str]] = {
        "dataset": {*paper.datasets},
        "method": {*paper.methods, *_called("method", paper.methods)},
        "partition": {*paper.partitions, *_called("partition", paper.partitions)},
        "metric": {*KNOWN_METRICS, *claim_metrics(paper), *option_metrics(paper)},
        "seed": set(),
    }
    for key, entry in paper.artefacts.items():
        found["metric"] |= {name.partition("@")[0] for name in entry.shown}
        for axis, values in values_of(paper, key).items():
            found.setdefault(axis, set()).update(_texts(values))
        for axis in entry.printed:
            found.setdefault(axis, set())
    for _, _, setting in settings_of(paper):
        values = [_default(setting), *values_elsewhere(paper, setting)]
        found.setdefault(setting, set()).update(_texts(values))
    return found


def _called(kind: str, entries: Mapping[str, Any]) -> Iterator[str]:
    """Yield the components that short names stand for, and the values of their parameters."""
    for entry in entries.values():
        text = entry if isinstance(entry, str) else entry.get(kind)
        with suppress(FedlogitError, TypeError):  # `component_checks` refuses what is no call
            call = parse_call(text)
            yield from (call["name"], *map(str, call["params"].values()))


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield values as labels may name them; of a mapping also what lies in it."""
    for value in values:
        yield from (str(value), str(scalar(value)))
        if isinstance(value, str) and value.startswith("{"):
            with suppress(ValueError, RecursionError):  # whoever uses the axis refuses what is none
                yield from (str(inner) for _, inner in dotted_keys.flat(json.loads(value)))


def _default(key: str) -> Any:
    """Return the default of a dotted key of a spec; None if it must be given."""
    model: type[FrozenConfig] = RunSpec
    default = None
    for part in key.split("."):
        if part not in model.model_fields:
            return None
        field = model.model_fields[part]
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        model = model_in(field.annotation) or model
    return default
