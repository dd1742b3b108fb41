"""Accuracy that each method loses under each condition: a bar each, or "n/a" (not applicable)."""

from __future__ import annotations

import math
from itertools import cycle

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import Lost
from fedlogit.results.analyses.lost import losses
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import POINTS_GAINED, POINTS_LOST, title, values
from fedlogit.results.style import CATEGORIES, GREY, INK, new_figure

__all__ = ["draw"]

_BAR = 0.15  # inches that a bar is high
_GAP = 0.14  # inches between the bars of two methods


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per data set and partition: methods down, points lost across, of one range.

    The options are those of the table `lost`; with ``gained``, points gained. Bars are means over
    seeds of the differences of each seed, whiskers one standard deviation. A single condition is
    named above the panels.
    """
    options = artefact.read_options(Lost)
    numbers = losses(artefact, options)
    shown = numbers[numbers["condition"] != options.against]
    if options.gained:
        shown = shown.assign(lost=-shown["lost"])
    conditions = values(shown, "condition")
    colours = dict(zip(conditions, cycle(CATEGORIES), strict=False))
    panels = list(shown.groupby(["dataset", "partition"], sort=False))
    methods = values(shown, "method")
    most = max(rows["condition"].nunique() for _, rows in panels)
    size = (3.6, len(methods) * (most * _BAR + _GAP) + 0.5)
    figure, grid = new_figure(1, len(panels), panel=size, share_x=True, share_y=True)
    several = shown["dataset"].nunique() > 1
    for axes, ((dataset, partition), rows) in zip(grid.flat, panels, strict=True):
        _panel(axes, artefact, rows, methods, colours)
        axes.set_title(artefact.place_label(dataset, partition, several=several))
        axes.set_xlabel(POINTS_GAINED if options.gained else POINTS_LOST)
    alone = f"{conditions[0]} " if len(conditions) == 1 else ""
    whiskers = "whiskers: standard deviation over seeds" if shown["n"].max() > 1 else ""
    title(figure, artefact, collect(artefact), f"{alone}compared with: {options.against}", whiskers)
    if len(conditions) > 1:
        legend(figure, [Patch(color=colours[name], label=name) for name in conditions])
    return figure


def _panel(
    axes: Axes, artefact: Artefact, runs: pd.DataFrame, methods: list[str], colours: dict[str, str]
) -> None:
    conditions = values(runs, "condition")
    high = 1 / (len(conditions) + _GAP / _BAR)  # of the room that a method has
    for row in runs.to_dict("records"):
        place = conditions.index(row["condition"]) - (len(conditions) - 1) / 2
        y = methods.index(row["method"]) + place * high
        if row["cannot"] or math.isnan(row["lost"]):
            word = "n/a" if row["cannot"] else "diverged"
            axes.annotate(
                word, (0, y), (3, 0), textcoords="offset points", va="center", fontsize=7.5,
                color=GREY, style="italic",
            )  # fmt: skip
            continue
        spread = None if math.isnan(row["lost_std"]) else 100 * row["lost_std"]
        axes.barh(
            y, 100 * row["lost"], high, color=colours[row["condition"]], xerr=spread, ecolor=INK,
            error_kw={"elinewidth": 1},
        )  # fmt: skip
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(methods)), [artefact.label(name) for name in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.margins(x=0.05)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
