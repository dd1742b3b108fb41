"""Accuracy of each method by communication round (Who to Trust A.1 speaks of convergence by 10)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from fedlogit.errors import FedlogitError
from fedlogit.papers.options import ByRound
from fedlogit.results.artefact import REFERENCE, Artefact
from fedlogit.results.collect import collect, curves, seeds
from fedlogit.results.figures._parts import (
    Stroke,
    band,
    competitors,
    legend,
    method_handle,
    reference_handle,
    reference_line,
    share_axis,
    strokes,
    title,
    values,
)
from fedlogit.results.metrics import metric_label
from fedlogit.results.style import PALETTE, new_figure

__all__ = ["CELL", "draw"]

CELL = ("dataset", "partition", "method")


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset (down) and partition (across): the mean over seeds by round.

    The band spans the seeds, from the least to the largest. The dashed line is where the reference
    ends, whose rounds are not comparable; a method of one round is a dashed line with its band, to
    compare the others' later rounds with. A run that diverged contributes the rounds it had. The
    option ``log`` makes the vertical axis logarithmic.
    """
    final, frame = collect(artefact), curves(artefact)
    if artefact.metric not in frame:
        raise FedlogitError(f"{artefact.name}: {artefact.metric!r} is no column of rounds.csv")
    shown = competitors(frame)
    if alone := shown.empty:  # then the reference is a method as any other
        shown = frame
    # Partitions that differ in a dataset's parameters only have one label, and one column.
    shown = shown.assign(column=shown["partition"].map(artefact.label))
    datasets, styles = values(shown, "dataset"), strokes(values(shown, "method"))
    last = shown.groupby("method")["round"].max()
    once = set(last.index[last == 1])
    columns = values(shown, "column")
    figure, grid = new_figure(len(datasets), len(columns), panel=(3.1, 2.5), share_y="row")
    options, has_reference = artefact.read_options(ByRound), False
    for row, dataset in zip(grid, datasets, strict=True):
        for axes, column in zip(row, columns, strict=True):
            here = shown[(shown["dataset"] == dataset) & (shown["column"] == column)]
            axes.set_visible(not here.empty)
            if here.empty:
                continue
            if len(several := here["partition"].unique()) > 1:
                raise FedlogitError(
                    f"{artefact.name}: partitions {' and '.join(map(str, several))} of {dataset}"
                    f" share the label {column!r}"
                )
            if not alone:
                beside = _reference(final, dataset, here)
                has_reference |= reference_line(axes, beside, artefact.metric)
            _panel(axes, here, styles, artefact.metric, once)
            share_axis(axes.yaxis, artefact.metric)
            if options.log:
                axes.set_yscale("log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
                axes.yaxis.set_minor_locator(NullLocator())
            if options.shade_warm_up:
                _shade_warm_up(axes, here)
            fewer = f" ({seeds(here)})" * (seeds(here) != seeds(shown))
            axes.set_title(f"{artefact.label(dataset)}, {column}{fewer}")
    for row in grid:
        first = _panels_with_runs(row)[0]
        first.set_ylabel(metric_label(artefact.metric).capitalize())
        first.tick_params(labelleft=True)  # shared axes have numbers in the first column alone
    for panels in grid.T:
        _panels_with_runs(panels)[-1].set_xlabel("Round")
    handles: list[Artist] = [
        method_handle(artefact, method, style._replace(dash="--") if method in once else style)
        for method, style in styles.items()
    ]
    handles += [reference_handle(artefact)] if has_reference else []
    if options.shade_warm_up and "seconds_probe" in shown:
        handles.append(Patch(color=PALETTE["grey"], alpha=0.18, lw=0, label="warm-up of CELM"))
    title(figure, artefact, final, band(shown))
    legend(figure, handles)
    return figure


def _panels_with_runs(panels: Iterable[Axes]) -> list[Axes]:
    """Return the panels that have runs: a scale need not have every partition of every data set."""
    return [axes for axes in panels if axes.get_visible()]


def _reference(final: pd.DataFrame, dataset: str, here: pd.DataFrame) -> pd.DataFrame:
    """Return the reference's runs on a data set; those of a panel's partition, if it has some."""
    own = final[(final["dataset"] == dataset) & (final["method"] == REFERENCE)]
    alike = own[own["partition"].isin(here["partition"])]
    return own if alike.empty else alike


def _panel(
    axes: Axes,
    runs: pd.DataFrame,
    styles: dict[str, Stroke],
    metric: str,
    once: Collection[str],
) -> None:
    """Draw the methods of a panel; those of one round, `once`, as a level for the others."""
    measured = runs.dropna(subset=[metric])
    for method, (colour, marker, dash) in styles.items():
        own = measured[measured["method"] == method].groupby("round")[metric]
        band = own.agg(["mean", "min", "max"])
        if method in once and len(band):
            mean, low, high = band.iloc[0]
            axes.axhline(mean, color=colour, lw=1.4, ls="--", zorder=1)
            axes.axhspan(low, high, color=colour, alpha=0.15, lw=0, zorder=0)
        every = max(1, len(band) // 8)
        axes.plot(
            band.index, band["mean"], color=colour, marker=marker, ls=dash, markevery=every, ms=4.5
        )
        axes.fill_between(band.index, band["min"], band["max"], color=colour, alpha=0.15, lw=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def _shade_warm_up(axes: Axes, runs: pd.DataFrame) -> None:
    """Shade the rounds in which CELM probes: those that say how long probing took."""
    if "seconds_probe" in runs and runs["seconds_probe"].notna().any():
        last = runs.loc[runs["seconds_probe"].notna(), "round"].max()
        axes.axvspan(0.5, last + 0.5, color=PALETTE["grey"], alpha=0.18, lw=0, zorder=0)
