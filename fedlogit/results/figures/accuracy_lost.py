"""Accuracy that each method loses under each condition: a bar each, or "n/a" (not applicable)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullLocator, SymmetricalLogLocator

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import Lost
from fedlogit.results.analyses.lost import losses
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import DIFFERENCES, POINTS_GAINED, POINTS_LOST, title, values
from fedlogit.results.style import CATEGORIES, GREY, INK, new_figure

__all__ = ["colours", "draw"]

_BAR = 0.15  # inches that a bar is high
_GAP = 0.14  # inches between the bars of two methods
_RAMP = LinearSegmentedColormap.from_list("ramp", ["#2b4058", "#c3d3e0"])  # of ordered conditions
_ON_BAR = withStroke(linewidth=2.2, foreground="white")  # a whisker on a dark bar
_UNEVEN = 10  # times the third quartile of all bars: from there on, a bar would hide the others
_SMALL = 1  # points: to there from 0, an axis that is logarithmic is linear


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per data set and partition: methods down, points lost across, of one range.

    The options are those of the table `lost`; with ``gained``, points gained. Bars are means over
    seeds of the differences of each seed, whiskers one standard deviation. A single condition is
    named above the panels. Where a bar is so long that the others could not be seen beside it, the
    axis is logarithmic beyond one point.
    """
    options = artefact.read_options(Lost)
    numbers = losses(artefact, options)
    shown = numbers[numbers["condition"] != options.against]
    if options.gained:
        shown = shown.assign(lost=-shown["lost"])
    conditions = values(shown, "condition")
    shades = colours(conditions)
    panels = list(shown.groupby(["dataset", "partition"], sort=False))
    methods = values(shown, "method")
    most = max(rows["condition"].nunique() for _, rows in panels)
    size = (3.6, len(methods) * (most * _BAR + _GAP) + 0.5)
    figure, grid = new_figure(1, len(panels), panel=size, share_x=True, share_y=True)
    several = shown["dataset"].nunique() > 1
    for axes, ((dataset, partition), rows) in zip(grid.flat, panels, strict=True):
        _panel(axes, artefact, rows, methods, shades)
        axes.set_title(artefact.place_label(dataset, partition, several=several))
        axes.set_xlabel(POINTS_GAINED if options.gained else POINTS_LOST)
    uneven = _is_uneven(shown["lost"])
    if uneven:
        _make_logarithmic(grid[0, 0])  # all panels share its axis
    alone = f"{conditions[0]} " if len(conditions) == 1 else ""
    whiskers = f"bars: {DIFFERENCES}; whiskers: standard deviation" if shown["n"].max() > 1 else ""
    against = f"{alone}compared with: {options.against}"
    beyond = f"axis logarithmic beyond {_SMALL} point" if uneven else ""
    title(figure, artefact, collect(artefact), against, whiskers, beyond)
    if len(conditions) > 1:
        legend(figure, [Patch(color=shades[name], label=name) for name in conditions])
    return figure


def colours(conditions: Sequence[str]) -> dict[str, str]:
    """Return the colour of each condition: from dark to light where they are levels in order.

    Such have one number each, which rises or falls: 8 bits, 4 bits, 2 bits.
    """
    found = [re.findall(r"\d+(?:\.\d+)?", name) for name in conditions]
    steps = np.diff([float(numbers[0]) if len(numbers) == 1 else math.nan for numbers in found])
    if len(steps) and ((steps > 0).all() or (steps < 0).all()):
        ramp = [to_hex(_RAMP(share)) for share in np.linspace(0, 1, len(conditions))]
        return dict(zip(conditions, ramp, strict=True))
    return dict(zip(conditions, cycle(CATEGORIES), strict=False))


def _is_uneven(lost: pd.Series) -> bool:
    """Return whether a bar is so long that the others could not be seen beside it."""
    long = lost.abs()
    return bool(long.max() > _UNEVEN * long.quantile(0.75) > 0)


def _make_logarithmic(axes: Axes) -> None:
    """Make the horizontal axis logarithmic on both sides, with 1 and 5 times powers of ten."""
    axes.set_xscale("symlog", linthresh=_SMALL)
    axis = axes.xaxis
    axis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=_SMALL, subs=(1, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def _panel(
    axes: Axes, artefact: Artefact, runs: pd.DataFrame, methods: list[str], shades: dict[str, str]
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
        bar = axes.barh(
            y, 100 * row["lost"], high, color=shades[row["condition"]], xerr=spread, ecolor=INK,
            capsize=1.8, error_kw={"elinewidth": 1},
        )  # fmt: skip
        if bar.errorbar:
            _, caps, whiskers = bar.errorbar.lines
            for artist in (*caps, *whiskers):
                artist.set_path_effects([_ON_BAR])
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(methods)), [artefact.label(name) for name in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.margins(x=0.05)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
