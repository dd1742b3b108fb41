"""What the evidence for a claim calls the runs that it compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.claim_options import ANY
from fedlogit.results.metrics import metric_label

__all__ = ["Naming", "naming_of"]

Naming = Callable[[Mapping[str, Any]], str]
"""Names what has these values on these axes, as ``CELM, Dir(0.01)``."""

_NAMES_OF_THEMSELVES = {"dataset", "method", "partition"}


def naming_of(artefact: Artefact) -> Naming:
    """Return how a table or figure names values: by its labels, or with the name of their axis."""

    def called(axis: str) -> str:
        label = artefact.label(axis)
        return axis.rpartition(".")[2].replace("_", " ") if label == axis else label

    def name(axis: str, value: object) -> str:
        if isinstance(value, list):
            return " or ".join(dict.fromkeys(name(axis, one) for one in value))
        if axis == "metric" and (known := metric_label(str(value))) != value:
            return known
        label = artefact.label(value, axis) or str(value)  # "" is the usual case, here opposed
        labelled = axis in _NAMES_OF_THEMSELVES or label.replace(",", "") != str(value)
        return label if labelled else f"{called(axis)} {label}"

    def names(values: Mapping[str, Any]) -> str:
        return ", ".join(filter(None, (name(a, v) for a, v in values.items() if v != ANY)))

    return names
