"""What several kinds of figures share: headers, method names, the reference line, the legend."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from seaborn.utils import relative_luminance

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import REFERENCE, Artefact, RunRef
from fedlogit.papers.metric_names import is_share
from fedlogit.papers.schema import JUDGED_SCALE
from fedlogit.results.collect import describe, seeds, summarise
from fedlogit.results.runs.gathered import gather
from fedlogit.results.runs.run import Run
from fedlogit.results.style import (
    GREY,
    INK,
    Look,
    family,
    grow,
    header,
    in_order,
    look,
    looks,
    text_lines,
    text_width,
)

__all__ = [
    "BARS",
    "POINTS_GAINED",
    "POINTS_LOST",
    "Dash",
    "Stroke",
    "all_diverged",
    "band_note",
    "bars_note",
    "dashes",
    "family_look",
    "format_axis",
    "in_per_cent",
    "legend",
    "legible",
    "method_handle",
    "name_axes",
    "own_axes_note",
    "panel_name",
    "panels_of",
    "published_handle",
    "reference_handle",
    "reference_line",
    "reported",
    "runs_of",
    "seeds_if_fewer",
    "strokes",
    "title",
    "values",
    "wrapped_labels",
]

Dash = Literal["-", "--", ":", "-."]
BARS = "bars: standard deviation over seeds"
POINTS_GAINED = "Points gained (below 0: lost)"
POINTS_LOST = "Points lost (below 0: gained)"
_DASHES: tuple[Dash, ...] = ("-", "--", ":", "-.")
_TICK = 10  # letters in a line below a tick
_LIGHT = 0.245  # relative luminance from which dark text has more contrast than white
_LEGEND_LINE = 0.19  # inches that a line of a legend is high
_LEGEND_FONT = FontProperties(family="DejaVu Sans", size=9)  # that of the house style
_HANDLE = 3.6  # times the size of a legend's letters, so that a line shows its dashes; else 2


class Stroke(NamedTuple):
    """How a method's line is drawn in one figure."""

    colour: str
    marker: str
    dash: Dash


def title(figure: Figure, artefact: Artefact, frame: pd.DataFrame, *notes: str) -> None:
    """Write the artefact's title; below it data, scale, seeds, device, stand-ins, and notes."""
    datasets = frame["dataset"].unique()
    on = f"data: {artefact.label(datasets[0])}" if len(datasets) == 1 else ""
    parts = [on, describe(frame), artefact.not_run, *notes]
    header(figure, artefact.title, "; ".join(filter(None, parts)))


def runs_of(artefact: Artefact) -> Iterator[tuple[RunRef, Run]]:
    """Yield the runs that did not diverge, with their place on the axes.

    Raises:
        FedlogitError: if every run diverged.
    """
    found = [(ref, run) for ref, run in gather(artefact) if not run.diverged]
    if not found:
        raise all_diverged(artefact)
    yield from found


def all_diverged(artefact: Artefact) -> FedlogitError:
    """Return the error of a figure of whose runs none can be drawn."""
    return FedlogitError(f"{artefact.name}: every run diverged, so there is nothing to draw")


def seeds_if_fewer(runs: pd.DataFrame, all_runs: pd.DataFrame) -> str:
    """Return " (1 seed)" for a panel's title, if its seeds are not those of the whole figure."""
    return "" if seeds(runs) == seeds(all_runs) else f" ({seeds(runs)})"


def panel_name(artefact: Artefact, ref: RunRef) -> str:
    """Return what a panel of one dataset and partition is called."""
    names = (ref.axes.get(axis) for axis in ("dataset", "partition"))
    return ", ".join(artefact.label(name) for name in names if name is not None)


def panels_of(artefact: Artefact) -> dict[str, list[tuple[RunRef, Run]]]:
    """Return the runs that did not diverge, by dataset and partition, in order of appearance."""
    panels: dict[str, list[tuple[RunRef, Run]]] = {}
    for ref, run in runs_of(artefact):
        panels.setdefault(panel_name(artefact, ref), []).append((ref, run))
    return panels


def own_axes_note(panels: Sequence[Axes]) -> str:
    """Return that panels differ in their vertical axes, if they do: heights do not compare."""
    several = len({axes.get_ylim() for axes in panels}) > 1
    return "every panel has its own vertical axis" if several else ""


def bars_note(frame: pd.DataFrame) -> str:
    """Return what error bars are, if there are any."""
    return "" if seeds(frame) == "1 seed" else BARS


def band_note(frame: pd.DataFrame) -> str:
    """Return what a band around a line is, if there is one."""
    several = frame["seed"].nunique() > 1
    return "band: from the lowest to the highest seed" if several else ""


def values(frame: pd.DataFrame, axis: str) -> list[str]:
    """Return the values on an axis in order of appearance; methods in that of every figure."""
    found = list(frame[axis].drop_duplicates())
    return in_order(found) if axis == "method" else found


def dashes(methods: Iterable[str]) -> dict[str, Dash]:
    """Return how the line of each method is drawn: whole, but dashed for a second of its colour.

    A method has one colour in all figures, so that in a figure of many several share one.
    """
    styles: dict[str, Dash] = {}
    colours: list[str] = []
    for method, (colour, _) in looks(methods).items():
        styles[method] = _DASHES[colours.count(colour) % len(_DASHES)]
        colours.append(colour)
    return styles


def strokes(methods: Iterable[str]) -> dict[str, Stroke]:
    """Return how the line of each method of a figure is drawn; no two are drawn alike."""
    known = looks(methods)
    return {method: Stroke(*known[method], dash) for method, dash in dashes(known).items()}


def method_handle(artefact: Artefact, method: str, stroke: Stroke) -> Line2D:
    """Return a legend entry for a method."""
    colour, marker, dash = stroke
    label = artefact.label(method)
    return Line2D([], [], color=colour, marker=marker, linestyle=dash, label=label)


def published_handle(label: str) -> Line2D:
    """Return the legend entry of the paper's numbers, whose markers are hollow."""
    return Line2D(
        [], [], marker="o", markersize=8, markeredgewidth=1.3, markerfacecolor="white",
        markeredgecolor=GREY, linestyle="none", label=label,
    )  # fmt: skip


def name_axes(grid: np.ndarray, drawn: Sequence[Axes], x: str, y: str = "") -> None:
    """Name the horizontal axis below each column, the vertical one beside each row.

    Args:
        grid: All panels, (rows, columns).
        drawn: Those that are drawn in, as from `wrapped_panels`.
        x: The horizontal axis.
        y: The vertical axis.
    """
    for row in grid:
        row[0].set_ylabel(y)
    for axes in drawn[-grid.shape[1] :]:
        axes.set_xlabel(x)
        axes.tick_params(labelbottom=True)


def reported(artefact: Artefact) -> str:
    """Return what the paper's numbers are called, in a figure that may be of a reduced scale."""
    reduced = artefact.scale != JUDGED_SCALE
    return "reported in the paper" + (", at its own scale" if reduced else "")


def wrapped_labels(artefact: Artefact, names: Iterable[str]) -> list[str]:
    """Return labels of ticks side by side, in lines so short that neighbours do not touch."""
    return [textwrap.fill(artefact.label(name), _TICK) for name in names]


def legible(axes: Axes, across: int) -> None:
    """Give the numbers in a heat map's cells the colour, dark or white, of the higher contrast."""
    colours = axes.collections[0].get_facecolor()
    for text in axes.texts:
        x, y = (int(place) for place in text.get_position())
        light = relative_luminance(colours[y * across + x])
        text.set_color(INK if light > _LIGHT else "white")


def in_per_cent(axis: Axis) -> None:
    """Write shares on an axis in per cent, with as many decimals as a tick needs."""
    axis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda share, _: f"{round(100 * share, 6) + 0.0:g}%")


def format_axis(axis: Axis, metric: str) -> None:
    """Write an axis in per cent if its metric is a share."""
    if is_share(metric):
        in_per_cent(axis)


def family_look(method: str) -> Look:
    """Return the look of a method by its short name, whatever its parameters.

    For figures that name each point or panel, so that relatives may share a colour.
    """
    return look(family(method))


def reference_line(
    axes: Axes, runs: pd.DataFrame, metric: str, *, every_seed: bool = False
) -> bool:
    """Draw the reference as a dashed line in a band; return whether there is one.

    The band has one standard deviation on either side, or goes from the lowest to the highest seed.
    """
    runs = runs[runs["method"] == REFERENCE]
    if runs.empty or not runs[metric].notna().any():
        return False
    cell = summarise(runs, ["dataset", "method"], metric).iloc[0]
    mean, std = float(cell["mean"]), float(cell["std"])
    axes.axhline(mean, color=INK, linestyle="--", linewidth=1.2, zorder=1)
    if std == std:  # NaN for a single seed
        ends = (runs[metric].min(), runs[metric].max()) if every_seed else (mean - std, mean + std)
        low, high = map(float, ends)
        axes.axhspan(low, high, color=INK, alpha=0.12, linewidth=0, zorder=0)
    return True


def reference_handle(artefact: Artefact) -> Line2D:
    """Return the legend entry of the reference line."""
    return Line2D([], [], color=INK, linestyle="--", linewidth=1.2, label=artefact.label(REFERENCE))


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
