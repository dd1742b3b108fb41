"""How lines of a figure look, and its legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D

from fedlogit.papers.artefact import REFERENCE, Artefact
from fedlogit.papers.schema import JUDGED_SCALE
from fedlogit.results.style import (
    GREY,
    INK,
    Look,
    family,
    grow,
    look,
    looks,
    text_lines,
    text_width,
)

__all__ = [
    "DASHES",
    "Dash",
    "Stroke",
    "dashes",
    "family_look",
    "legend",
    "line_handle",
    "method_handle",
    "published_handle",
    "reference_handle",
    "reported",
    "strokes",
]

Dash = Literal["-", "--", ":", "-."]
DASHES: tuple[Dash, ...] = ("-", "--", ":", "-.")
_LEGEND_LINE = 0.19  # inches that a line of a legend is high
_LEGEND_FONT = FontProperties(family="DejaVu Sans", size=9)  # that of the house style
_HANDLE = 3.6  # times the size of a legend's letters, so that a line shows its dashes; else 2


class Stroke(NamedTuple):
    """How a method's line is drawn in one figure."""

    colour: str
    marker: str
    dash: Dash


def dashes(methods: Iterable[str]) -> dict[str, Dash]:
    """Return how the line of each method is drawn: whole, but dashed for a second of its colour.

    A method has one colour in all figures, so that in a figure of many several share one.
    """
    styles: dict[str, Dash] = {}
    colours: list[str] = []
    for method, (colour, _) in looks(methods).items():
        styles[method] = DASHES[colours.count(colour) % len(DASHES)]
        colours.append(colour)
    return styles


def strokes(methods: Iterable[str]) -> dict[str, Stroke]:
    """Return how the line of each method of a figure is drawn; no two are drawn alike."""
    known = looks(methods)
    return {method: Stroke(*known[method], dash) for method, dash in dashes(known).items()}


def family_look(method: str) -> Look:
    """Return the look of a method by its short name, whatever its parameters.

    For figures that name each point or panel, so that relatives may share a colour.
    """
    return look(family(method))


def line_handle(label: str, stroke: Stroke) -> Line2D:
    """Return a legend entry for a line."""
    colour, marker, dash = stroke
    return Line2D([], [], color=colour, marker=marker, linestyle=dash, label=label)


def method_handle(artefact: Artefact, method: str, stroke: Stroke) -> Line2D:
    """Return a legend entry for a method."""
    return line_handle(artefact.label(method), stroke)


def published_handle(label: str) -> Line2D:
    """Return the legend entry of the paper's numbers, whose markers are hollow."""
    return Line2D(
        [], [], marker="o", markersize=8, markeredgewidth=1.3, markerfacecolor="white",
        markeredgecolor=GREY, linestyle="none", label=label,
    )  # fmt: skip


def reference_handle(artefact: Artefact) -> Line2D:
    """Return the legend entry of the reference line."""
    return Line2D([], [], color=INK, linestyle="--", linewidth=1.2, label=artefact.label(REFERENCE))


def reported(artefact: Artefact) -> str:
    """Return what the paper's numbers are called, in a figure that may be of a reduced scale."""
    reduced = artefact.scale != JUDGED_SCALE
    return "reported in the paper" + (", at its own scale" if reduced else "")


def legend(figure: Figure, handles: Iterable[Artist]) -> None:
    """Put one legend below all panels, in the columns that take the fewest lines.

    Long entries have several lines where that makes room for another column. The figure grows by
    all lines but the first, so that panels keep their height. Where a line is dashed, all lines of
    the legend are long enough to see it.
    """
    entries = list(handles)
    wide = _HANDLE if any(map(_is_dashed, entries)) else 2.0
    room = 0.4 + 0.125 * wide  # inches beside the letters: 9 points of 72 are an eighth of an inch
    width = figure.get_figwidth()
    names = [str(entry.get_label()) for entry in entries]
    choices = [
        (columns, labels)
        for columns in range(1, len(entries) + 1)
        for labels in (names, _wrapped(names, width / columns - room))
        if _legend_width(labels, columns, room) <= width or columns == 1
    ]
    # Of as few lines, whole entries come first, then fewer columns: no line with a single entry.
    columns, labels = min(choices, key=lambda it: (_height(it[1], it[0]), it[1] != names, it[0]))
    for entry, label in zip(entries, labels, strict=True):
        entry.set_label(label)
    grow(figure, _LEGEND_LINE * (_height(labels, columns) - 1))
    figure.legend(handles=entries, loc="outside lower center", ncols=columns, handlelength=wide)


def _is_dashed(entry: Artist) -> bool:
    return isinstance(entry, Line2D) and entry.get_linestyle() in ("--", ":", "-.")


def _wrapped(labels: Sequence[str], width: float) -> list[str]:
    """Return labels in lines no wider than so many inches, but for single words."""
    return ["\n".join(text_lines(label, width, _LEGEND_FONT)) for label in labels]


def _legend_width(labels: Sequence[str], columns: int, room: float) -> float:
    """Return the width of a legend in inches, with `room` beside the letters of each column."""
    return sum(
        room + max(text_width(line, _LEGEND_FONT) for label in column for line in label.split("\n"))
        for column in _in_columns(labels, columns)
    )


def _height(labels: Sequence[str], columns: int) -> int:
    """Return how many lines a legend has: those of its tallest column."""
    tall = (sum(label.count("\n") + 1 for label in of) for of in _in_columns(labels, columns))
    return max(tall)


def _in_columns(labels: Sequence[str], columns: int) -> list[list[str]]:
    """Return the labels of each column; matplotlib fills them as evenly as `array_split`."""
    parts = np.array_split(np.arange(len(labels)), columns)
    return [[labels[i] for i in part] for part in parts]
