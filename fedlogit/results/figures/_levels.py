"""Methods without a place on the horizontal axis of a figure, drawn as lines across."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import Level
from fedlogit.results.collect import summarise
from fedlogit.results.figures._legend import DASHES, Dash
from fedlogit.results.figures._panels import metric_name
from fedlogit.results.style import INK

__all__ = ["DrawnLevel", "draw_levels", "level_handle"]

_WIDTH = 1.1  # points, of a line
_LevelDash = Dash | tuple[int, tuple[float, ...]]
_DASHES: tuple[_LevelDash, ...] = (*DASHES[1:], (0, (7, 1.5, 1, 1.5, 1, 1.5)))


class DrawnLevel(NamedTuple):
    """How a level was drawn."""

    colour: str
    dash: _LevelDash


def draw_levels(
    axes: Axes,
    artefact: Artefact,
    runs: pd.DataFrame,
    panel: str,
    metrics: Sequence[str],
    levels: Iterable[Level],
    colours: Mapping[str, str],
) -> dict[str, DrawnLevel]:
    """Draw the mean of each level in a panel; return how it looks by its name in the legend.

    The name has the metric where a level has one of its own, or the figure has several.

    Args:
        axes: The panel.
        artefact: The figure.
        runs: Those of the levels, each with its `panel` and its `line`.
        panel: Its name.
        metrics: What the figure shows, the first of them first.
        levels: Which there may be; those without runs are left out.
        colours: The colour by the name of a line; black, if there is none.
    """
    here = _of_panel(runs, panel)
    drawn: dict[str, DrawnLevel] = {}
    # By all panels' runs, so that a level looks the same in each.
    known = [level for level in levels if not _of_level(runs, level, metrics).empty]
    for level, dash in zip(known, itertools.cycle(_DASHES), strict=False):
        metric = level.metric or metrics[0]
        found = _of_level(here, level, metrics)
        if found.empty:
            continue
        look = DrawnLevel(colours.get(found["line"].iloc[0], INK), dash)
        mean = summarise(found, ["method"], metric)["mean"].item()
        axes.axhline(mean, color=look.colour, ls=look.dash, lw=_WIDTH, zorder=1)
        name = level.label or artefact.label(level.method)
        named = len(metrics) > 1 or metric != metrics[0]
        drawn[f"{name}, {metric_name(artefact, metric)}" if named else name] = look
    return drawn


def _of_level(runs: pd.DataFrame, level: Level, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the runs of a level that have its metric."""
    return runs[runs["method"] == level.method].dropna(subset=[level.metric or metrics[0]])


def level_handle(name: str, level: DrawnLevel) -> Line2D:
    """Return the legend entry of a level."""
    return Line2D([], [], color=level.colour, ls=level.dash, lw=_WIDTH, label=name)


def _of_panel(levels: pd.DataFrame, panel: str) -> pd.DataFrame:
    """Return the runs of a panel's levels; all, where they lie in no panel but are of one."""
    here = levels[levels["panel"] == panel]
    return levels if here.empty and levels["panel"].nunique() == 1 else here
