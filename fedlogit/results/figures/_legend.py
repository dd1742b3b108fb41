"""How lines of a figure look, and its legend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedlogit.papers.artefact import REFERENCE, Artefact
from fedlogit.papers.schema import JUDGED_SCALE
from fedlogit.results.style import GREY, INK, Look, family, grow, look, looks

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
    """Put one legend below all panels, in as many columns as the width allows.

    The figure grows by all of its lines but the first, so that panels keep their height.
    Where a line is dashed, all lines of the legend are long enough to see it.
    """
    entries = list(handles)
    wide = _HANDLE if any(map(_is_dashed, entries)) else 2.0
    room = 0.4 + 0.125 * wide  # inches beside the letters: 9 points of 72 are an eighth of an inch
    widths = [room + 0.073 * len(str(entry.get_label())) for entry in entries]
    columns = len(entries)
    while columns > 1 and _legend_width(widths, columns) > figure.get_size_inches()[0]:
        columns -= 1
    lines = -(-len(entries) // columns)
    columns = -(-len(entries) // lines)  # no line with a single entry
    grow(figure, _LEGEND_LINE * (lines - 1))
    figure.legend(handles=entries, loc="outside lower center", ncols=columns, handlelength=wide)


def _is_dashed(entry: Artist) -> bool:
    return isinstance(entry, Line2D) and entry.get_linestyle() in ("--", ":", "-.")


def _legend_width(widths: list[float], columns: int) -> float:
    """Return the width of a legend, whose columns matplotlib fills as evenly as `array_split`."""
    return float(sum(column.max() for column in np.array_split(widths, columns)))
