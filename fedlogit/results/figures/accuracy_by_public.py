"""Accuracy against the public set: how large it is, or how many classes it covers."""

from __future__ import annotations

import json

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import ByPublic
from fedlogit.results.collect import collect, competitors, summarise
from fedlogit.results.figures._beside import MOVED, line_shifts, moved
from fedlogit.results.figures._legend import Stroke, legend, method_handle, strokes
from fedlogit.results.figures._panels import (
    axis_label,
    bars_note,
    format_axis,
    line_with_bars,
    log_axis_note,
    own_axes_note,
    title,
    values,
)
from fedlogit.results.style import family, new_figure

__all__ = ["draw"]

_SEEDS = 5  # at most, that are drawn each


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset and partition: a line per method, bars of one standard deviation.

    Of few seeds each is a dot, too: of one that fails, mean and bar are where no run is.

    Every point of a line is of the same seeds, those that all of its points have. With the option
    ``log`` the horizontal axis is logarithmic.

    The horizontal axis is the option ``x``, by default the one axis of the runs that starts with
    ``public``. A list of classes stands at its length, and "all" at the number of all classes.
    """
    frame = _runs_of_merged_methods(artefact, competitors(collect(artefact)))
    options = artefact.read_options(ByPublic)
    axis = options.x or _public_axis(artefact)
    if axis not in frame:
        raise FedlogitError(f"{artefact.name}: option x = {axis!r} is no axis of its runs")
    frame = frame.assign(x=_positions(frame, axis))
    left_out = log_axis_note(frame["x"], log=options.log)
    frame = frame[~(frame["x"] <= 0)] if left_out else frame
    if frame.empty:
        raise FedlogitError(f"{artefact.name}: no run has {axis} > 0, as option log = true needs")
    drawn = _of_common_seeds(frame, artefact.metric)
    panels = frame[["dataset", "partition"]].drop_duplicates().to_numpy().tolist()
    styles = strokes(values(frame, "method"))
    figure, grid = new_figure(1, len(panels), panel=(3.8, 2.9))
    several = frame["dataset"].nunique() > 1
    for axes, (dataset, partition) in zip(grid.flat, panels, strict=True):
        here = drawn[(drawn["dataset"] == dataset) & (drawn["partition"] == partition)]
        _panel(axes, here, styles, artefact.metric, log=options.log)
        axes.set_title(artefact.place_label(dataset, partition, several=several))
        axes.set_xlabel(artefact.label(axis))
        format_axis(axes.yaxis, artefact.metric)
        if options.log:
            axes.set_xscale("log")
            axes.set_xticks(sorted(here["x"].unique()))
            axes.minorticks_off()
            axes.xaxis.set_major_formatter("{x:,.0f}")
    grid[0, 0].set_ylabel(axis_label(artefact, artefact.metric))
    fewer = len(drawn) < frame[artefact.metric].notna().sum()
    seeds = "of each line the seeds that all its points have" if fewer else ""
    own_axes = own_axes_note(list(grid.flat))
    bars = bars_note(drawn)
    dots = "dots: single seeds" if _shows_seeds(drawn) else ""
    title(figure, artefact, frame, bars and bars + MOVED, dots, seeds, own_axes, left_out)
    legend(figure, [method_handle(artefact, *item) for item in styles.items()])
    return figure


def _runs_of_merged_methods(artefact: Artefact, frame: pd.DataFrame) -> pd.DataFrame:
    """Return runs of which a method with other parameters but the same label is one method.

    So are those with other probes for other sizes. It is called by the shortest of its names.
    """
    names = sorted(frame["method"].unique(), key=len)
    known: dict[tuple[str, str], str] = {}
    for name in names:
        known.setdefault((family(name), artefact.label(name)), name)
    called = [known[family(name), artefact.label(name)] for name in frame["method"]]
    return frame.assign(method=called)


def _public_axis(artefact: Artefact) -> str:
    names = {axis for run in artefact.runs for axis in run.axes if axis.startswith("public")}
    if len(names) != 1:
        raise FedlogitError(f"{artefact.name}: set option x to the axis to draw along")
    return names.pop()


def _positions(frame: pd.DataFrame, axis: str) -> list[float]:
    """Return where each run stands: a number as it is, a list at its length."""
    classes = frame.groupby("dataset")["classes"].transform("max")  # unknown where a run diverged
    return [
        float(
            every if value == "all" else len(json.loads(value)) if isinstance(value, str) else value
        )
        for value, every in zip(frame[axis], classes, strict=True)
    ]


def _of_common_seeds(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return runs at the seeds at which each position of their line has a value."""
    known = frame.dropna(subset=[metric])
    line = ["dataset", "partition", "method"]
    positions = known.groupby(line)["x"].transform("nunique")
    of_seed = known.groupby([*line, "seed"])["x"].transform("nunique")
    return known[of_seed == positions]


def _shows_seeds(runs: pd.DataFrame) -> bool:
    """Return whether single seeds are drawn: two at least, and so few that each can be seen."""
    return 1 < runs["seed"].nunique() <= _SEEDS


def _panel(
    axes: Axes, runs: pd.DataFrame, styles: dict[str, Stroke], metric: str, *, log: bool
) -> None:
    cells = summarise(runs, ["method", "x"], metric).sort_values("x")
    lines = [cells[cells["method"] == method] for method in styles]
    shifts = line_shifts([own["x"] if bars_note(runs) else () for own in lines], log=log)
    for own, (method, style), shift in zip(lines, styles.items(), shifts, strict=True):
        x = moved(own["x"], shift, log=log)
        line_with_bars(axes, x, own["mean"], own["std"], style, zorder=2)
        seeds = runs[runs["method"] == method]
        if _shows_seeds(runs):
            at = moved(seeds["x"], shift, log=log)
            axes.plot(at, seeds[metric], ".", ms=5.5, color=style.colour, zorder=1.9)
    axes.set_xticks(sorted(cells["x"].unique()))
    axes.xaxis.set_major_formatter("{x:,.0f}")
