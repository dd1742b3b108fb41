"""What several kinds of figures draw: the header, runs by panel, axes, lines and heat maps."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike
from seaborn.utils import relative_luminance

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import REFERENCE, Artefact, RunRef
from fedlogit.papers.metric_names import is_share
from fedlogit.results.collect import describe_briefly, seeds, summarise_one
from fedlogit.results.figures._legend import Stroke
from fedlogit.results.formatting import sentence
from fedlogit.results.metrics import metric_label
from fedlogit.results.runs.gathered import gather, measured_on
from fedlogit.results.runs.run import Run
from fedlogit.results.style import INK, header, in_order

__all__ = [
    "BARS",
    "DIFFERENCES",
    "POINTS_GAINED",
    "POINTS_LOST",
    "all_diverged",
    "axis_label",
    "band_note",
    "bars_note",
    "format_axis",
    "heat_map",
    "in_per_cent",
    "line_with_bars",
    "log_axis_note",
    "log_ticks",
    "metric_name",
    "name_axes",
    "own_axes_note",
    "panel_name",
    "panels_of",
    "reference_line",
    "runs_of",
    "seeds_if_fewer",
    "title",
    "values",
    "wrapped_labels",
]

BARS = "mean over seeds; bars: standard deviation"
DIFFERENCES = "mean over seeds of the difference of each seed"
POINTS_GAINED = "Points gained (below 0: lost)"
POINTS_LOST = "Points lost (below 0: gained)"
_TICK = 10  # letters in a line below a tick
_LIGHT = 0.245  # relative luminance from which dark text has more contrast than white


def title(figure: Figure, artefact: Artefact, frame: pd.DataFrame, *notes: str) -> None:
    """Write the artefact's title; below it data, scale, seeds, stand-ins, and notes.

    Devices and engines are in the caption.
    """
    datasets = frame["dataset"].unique()
    on = f"data: {artefact.label(datasets[0])}" if len(datasets) == 1 else ""
    parts = [on, describe_briefly(frame), artefact.not_run, *notes]
    header(figure, artefact.title, "; ".join(filter(None, parts)))


def own_axes_note(panels: Sequence[Axes], which: str = "panel") -> str:
    """Return that panels, or rows, differ in their vertical axes, if they do: do not compare."""
    several = len({axes.get_ylim() for axes in panels}) > 1
    return f"every {which} has its own vertical axis" if several else ""


def bars_note(frame: pd.DataFrame) -> str:
    """Return what points and their error bars are, if there are any bars."""
    return "" if seeds(frame) == "1 seed" else BARS


def band_note(frame: pd.DataFrame, *, bars: bool = False) -> str:
    """Return what a line and the band around it are, or the bar beside its end; if there is one."""
    if frame["seed"].nunique() == 1:
        return ""
    spread = "bar beside the last round" if bars else "band"
    return f"line: mean over seeds; {spread}: from the lowest to the highest seed"


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


def panels_of(artefact: Artefact) -> dict[str, list[tuple[RunRef, Run]]]:
    """Return the runs that did not diverge, by dataset and partition, in order of appearance."""
    panels: dict[str, list[tuple[RunRef, Run]]] = {}
    for ref, run in runs_of(artefact):
        panels.setdefault(panel_name(artefact, ref), []).append((ref, run))
    return panels


def panel_name(artefact: Artefact, ref: RunRef) -> str:
    """Return what a panel of one dataset and partition is called.

    It is the partition alone where all runs are of one data set, which `title` names.
    """
    several = len({run.axes.get("dataset") for run in artefact.runs}) > 1
    dataset, partition = (ref.axes.get(axis) for axis in ("dataset", "partition"))
    names = [dataset if several or partition is None else None, partition]
    return ", ".join(artefact.label(name) for name in names if name is not None)


def seeds_if_fewer(runs: pd.DataFrame, all_runs: pd.DataFrame) -> str:
    """Return " (1 seed)" for a panel's title, if its seeds are not those of the whole figure."""
    return "" if seeds(runs) == seeds(all_runs) else f" ({seeds(runs)})"


def values(frame: pd.DataFrame, axis: str) -> list[str]:
    """Return the values on an axis in order of appearance; methods in that of every figure."""
    found = list(frame[axis].drop_duplicates())
    return in_order(found) if axis == "method" else found


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


def wrapped_labels(artefact: Artefact, names: Iterable[str]) -> list[str]:
    """Return labels of ticks side by side, in lines so short that neighbours do not touch."""
    return [textwrap.fill(_breakable(artefact.label(name)), _TICK) for name in names]


def _breakable(label: str) -> str:
    """Return a label in which words too long for a line break before a bracket, not anywhere."""
    words = (word.replace("(", " (") if len(word) > _TICK else word for word in label.split(" "))
    return " ".join(words)


def metric_name(artefact: Artefact, metric: str) -> str:
    """Return what a metric is called in words, with the samples that the runs were tested on."""
    return metric_label(metric, measured_on(artefact))


def axis_label(artefact: Artefact, metric: str) -> str:
    """Return what is written beside an axis of a metric: `metric_name` as a sentence."""
    return sentence(metric_name(artefact, metric))


def format_axis(axis: Axis, metric: str) -> None:
    """Write an axis in per cent if its metric is a share."""
    if is_share(metric):
        in_per_cent(axis)


def in_per_cent(axis: Axis) -> None:
    """Write shares on an axis in per cent, with as many decimals as a tick needs."""
    axis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda share, _: f"{round(100 * share, 6) + 0.0:g}%")


def log_axis_note(numbers: pd.DataFrame | pd.Series, *, log: bool = True) -> str:
    """Return that an axis leaves out numbers, if it is logarithmic and some are 0 or less."""
    left_out = log and (np.asarray(numbers, float) <= 0).any()
    return "numbers of 0 or less have no place on the logarithmic axis" if left_out else ""


def log_ticks(axis: Axis) -> None:
    """Write 1, 2 and 5 times each power of ten on a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_locator(NullLocator())


def line_with_bars(
    axes: Axes, x: ArrayLike, mean: ArrayLike, std: pd.Series, stroke: Stroke, zorder: float = 3
) -> None:
    """Draw a line with bars of one standard deviation; of a single seed, whose is NaN, without."""
    axes.errorbar(
        x, mean, yerr=std.fillna(0), color=stroke.colour, marker=stroke.marker, ls=stroke.dash,
        capsize=2.5, elinewidth=1.2, zorder=zorder,
    )  # fmt: skip


def reference_line(
    axes: Axes, runs: pd.DataFrame, metric: str, *, every_seed: bool = False
) -> bool:
    """Draw the reference as a dashed line in a band; return whether there is one.

    The band has one standard deviation on either side, or goes from the lowest to the highest seed.
    """
    runs = runs[runs["method"] == REFERENCE]
    if runs.empty or not runs[metric].notna().any():
        return False
    cell = summarise_one(runs, metric)
    mean, std = float(cell["mean"]), float(cell["std"])
    axes.axhline(mean, color=INK, linestyle="--", linewidth=1.2, zorder=1)
    if std == std:  # NaN for a single seed
        ends = (runs[metric].min(), runs[metric].max()) if every_seed else (mean - std, mean + std)
        low, high = map(float, ends)
        axes.axhspan(low, high, color=INK, alpha=0.12, linewidth=0, zorder=0)
    return True


def heat_map(axes: Axes, table: pd.DataFrame, fmt: str, **others: Any) -> None:
    """Draw a table as a heat map, a number in each cell.

    Args:
        axes: Where.
        table: What each cell says.
        fmt: How numbers are written, such as ``.1f``.
        others: Further arguments of `seaborn.heatmap`.
    """
    seaborn.heatmap(
        table, annot=True, fmt=fmt, cmap="Blues", cbar=False, ax=axes, linewidths=1,
        annot_kws={"fontsize": 8.5}, **others,
    )  # fmt: skip
    _contrast_numbers(axes, len(table.columns))
    axes.tick_params(length=0, rotation=0)
    axes.grid(visible=False)


def _contrast_numbers(axes: Axes, across: int) -> None:
    """Give the numbers in a heat map's cells the colour, dark or white, of the higher contrast."""
    colours = axes.collections[0].get_facecolor()
    for text in axes.texts:
        x, y = (int(place) for place in text.get_position())
        light = relative_luminance(colours[y * across + x])
        text.set_color(INK if light > _LIGHT else "white")
