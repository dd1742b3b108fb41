"""What a table's headings of several metrics mean, for its caption."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fedlogit.papers.artefact import Artefact
from fedlogit.results.formatting import sentence
from fedlogit.results.metrics import metric_label

__all__ = ["metric_sentences"]

_IMPLIED = {"test", "distance"}
"""What a heading may leave out of a metric's label without being explained."""


def metric_sentences(artefact: Artefact, samples: str) -> list[str]:
    """Return in words what several metrics are, less those whose heading says as much.

    Args:
        artefact: The table.
        samples: Which samples they were measured on, as from `measured_on`.
    """
    # By what comes before a comma: "JSD, mean Q" and "JSD, CELM" are both of JSD.
    families: dict[str, list[tuple[str, str]]] = {}
    for metric in artefact.shown:
        # One at several rounds is named once: rows or columns have the rounds.
        bare, at, _ = metric.partition("@")
        heading = _without_unit(artefact.label(metric, "metric"))
        label = _without_unit(metric_label(bare, samples))
        family = families.setdefault(heading.partition(", ")[0], [])
        family.append(("" if at else heading, label))
    words = dict.fromkeys(
        text for name, family in families.items() for text in _family_words(name, family)
    )
    return [sentence("; ".join(filter(None, words)))] if any(words) else []


def _family_words(name: str, family: Sequence[tuple[str, str]]) -> list[str]:
    """Return in words what metrics with a common name are: once, if one is what all vary.

    Args:
        name: What their headings have before a comma.
        family: Heading and label of each, without a heading where it is at a round.
    """
    common = min((label for _, label in family), key=len)
    varied = any(heading != name for heading, _ in family)
    spelt_out = name.isupper() or _words(name) <= _words(common)
    if varied and spelt_out and all(label.startswith(common) for _, label in family):
        return [_in_other_words(name, common)]
    return [_in_other_words(heading, label) if heading else label for heading, label in family]


def _in_other_words(heading: str, label: str) -> str:
    """Return ``heading: label``; only what the label adds in brackets, or "" if it adds nothing."""
    if added := re.fullmatch(rf"{re.escape(heading)} \((.*)\)", label, re.IGNORECASE):
        return f"{heading}: {added[1]}"
    adds_nothing = _words(label) - _words(heading) <= _IMPLIED
    return "" if adds_nothing else f"{heading}: {label}"


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w'-]+", text.lower()))


def _without_unit(text: str) -> str:
    return re.sub(r" \[[^]]*\]", "", text)
