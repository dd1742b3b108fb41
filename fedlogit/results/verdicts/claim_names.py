"""What the evidence for a claim calls the runs that it compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.claim_options import ANY
from fedlogit.results.metrics import metric_label
from fedlogit.results.runs.gathered import measured_on

__all__ = ["Naming", "naming_of"]

Naming = Callable[[Mapping[str, Any]], str]
"""Names what has these values on these axes, as ``CELM, Dir(0.01)``."""


def naming_of(artefact: Artefact) -> Naming:
    """Return how a table or figure names values: by its labels, bare numbers with their axis."""
    samples = measured_on(artefact)

    def name(axis: str, value: object) -> str:
        if isinstance(value, list):
            return " or ".join(dict.fromkeys(name(axis, one) for one in value))
        if axis == "metric" and (known := metric_label(str(value), samples)) != value:
            return known
        return artefact.full_label(value, axis) or str(value)  # "" is the usual case, here opposed

    def names(values: Mapping[str, Any]) -> str:
        return ", ".join(filter(None, (name(a, v) for a, v in values.items() if v != ANY)))

    return names
