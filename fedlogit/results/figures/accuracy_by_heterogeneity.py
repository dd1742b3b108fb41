"""Accuracy of each method by classes per client, beside the paper's (Who to Trust, Figure 1)."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedlogit.papers.artefact import REFERENCE, Artefact
from fedlogit.results.collect import collect, competitors, summarise
from fedlogit.results.figures._legend import (
    Stroke,
    legend,
    method_handle,
    published_handle,
    reference_handle,
    reported,
    strokes,
)
from fedlogit.results.figures._panels import (
    axis_label,
    bars_note,
    format_axis,
    line_with_bars,
    reference_line,
    title,
    values,
    wrapped_labels,
)
from fedlogit.results.style import INK, new_figure
from fedlogit.results.verdicts.published import unambiguous

__all__ = ["draw", "enlarged_partitions"]

_FLAT = 0.25  # of a panel's height: what lies within less of it can hardly be distinguished


class _PanelContent(NamedTuple):
    """What one panel shows: a data set and some of its partitions."""

    dataset: str
    partitions: list[str]
    whole: bool


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset: partitions across, a line per method, the reference dashed.

    Bars are standard deviations over seeds. The paper's numbers are hollow markers, and its
    reference a dotted line, at any scale. Where the first partition takes most of the height, a
    second panel has the others alone, on a vertical axis of its own.
    """
    frame = collect(artefact)
    shown = competitors(frame)
    styles = strokes(values(shown, "method"))
    rows = [_panel_contents(d, shown, artefact.metric) for d in values(shown, "dataset")]
    figure, panels = _panels(artefact, rows)
    has_reference = has_paper = False
    for axes, place in panels:
        here = frame[frame["dataset"] == place.dataset]
        has_reference |= reference_line(axes, here, artefact.metric)
        _lines(axes, competitors(here), artefact.metric, place.partitions, styles)
        has_paper |= _paper(axes, reference, artefact.metric, place, styles)
        _label_partitions(axes, artefact, place)
        if len(panels) > 1:  # the subtitle names a single one's data set
            axes.set_title(_panel_title(artefact, place))
        format_axis(axes.yaxis, artefact.metric)
    handles = [method_handle(artefact, *item) for item in styles.items()]
    handles += [reference_handle(artefact)] if has_reference else []
    handles += _paper_handles(reported(artefact)) if has_paper else []
    of_reference = frame.loc[frame["method"] == REFERENCE, "seed"].nunique()
    band = "band of the dashed line: likewise" if has_reference and of_reference > 1 else ""
    title(figure, artefact, frame, bars_note(frame), band)
    legend(figure, handles)
    return figure


def enlarged_partitions(cells: pd.DataFrame, partitions: list[str]) -> list[str]:
    """Return the partitions after the first if they need an axis of their own, else none.

    Args:
        cells: The `mean` of each `partition` and method.
        partitions: In their order on the axis.
    """
    means = cells["mean"].dropna()
    rest = means[cells["partition"] != partitions[0]]
    if len(rest) < 2 or np.ptp(rest) >= _FLAT * np.ptp(means):
        return []
    return partitions[1:]


def _panel_contents(dataset: str, runs: pd.DataFrame, metric: str) -> list[_PanelContent]:
    """Return the panels of a data set: all partitions, and maybe those after the first."""
    partitions = values(runs, "partition")
    cells = summarise(runs[runs["dataset"] == dataset], ["partition", "method"], metric)
    larger = enlarged_partitions(cells, partitions)
    found = [_PanelContent(dataset, partitions, True)]
    return [*found, _PanelContent(dataset, larger, False)] if larger else found


def _panels(
    artefact: Artefact, rows: list[list[_PanelContent]]
) -> tuple[Figure, list[tuple[Axes, _PanelContent]]]:
    """Return a figure and its panels: side by side, or a row per dataset if one has two."""
    if max(map(len, rows)) == 1:
        rows = [[place for row in rows for place in row]]
    figure, grid = new_figure(len(rows), max(map(len, rows)), panel=(4.0, 3.1))
    panels: list[tuple[Axes, _PanelContent]] = []
    for line, row in zip(grid, rows, strict=True):
        for axes in line[len(row) :]:
            axes.set_visible(False)
        panels += zip(line[: len(row)], row, strict=True)
    for axes in grid[:, 0]:
        axes.set_ylabel(axis_label(artefact, artefact.metric))
    return figure, panels


def _panel_title(artefact: Artefact, place: _PanelContent) -> str:
    """Return what a panel shows: its data set, or a part of it."""
    name = artefact.label(place.dataset)
    return name if place.whole else f"{name}, part of it enlarged"


def _label_partitions(axes: Axes, artefact: Artefact, place: _PanelContent) -> None:
    """Write a panel's partitions below it."""
    labels = wrapped_labels(artefact, place.partitions)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.4, len(place.partitions) - 0.6)


def _sideways_shifts(methods: Collection[str]) -> np.ndarray:
    """Return how far each method is moved sideways, so that none hides another."""
    return (np.arange(len(methods)) - (len(methods) - 1) / 2) * min(0.15, 0.5 / len(methods))


def _lines(
    axes: Axes, runs: pd.DataFrame, metric: str, partitions: list[str], styles: dict[str, Stroke]
) -> None:
    cells = summarise(runs, ["partition", "method"], metric)
    for (method, style), shift in zip(styles.items(), _sideways_shifts(styles), strict=True):
        own = cells[cells["method"] == method].set_index("partition").reindex(partitions)
        line_with_bars(axes, np.arange(len(partitions)) + shift, own["mean"], own["std"], style)


def _paper(
    axes: Axes,
    reference: pd.DataFrame | None,
    metric: str,
    place: _PanelContent,
    styles: dict[str, Stroke],
) -> bool:
    """Add the paper's numbers; return whether it has any for this panel."""
    if reference is None:
        return False
    there = reference[(reference["dataset"] == place.dataset) & (reference["metric"] == metric)]
    there = unambiguous(there, ["method", "partition"])
    for (method, style), shift in zip(styles.items(), _sideways_shifts(styles), strict=True):
        own = there[(there["method"] == method) & there["partition"].isin(place.partitions)]
        x = np.array([place.partitions.index(p) for p in own["partition"]]) + shift
        axes.plot(
            x, own["mean"], style.marker, mfc="white", mec=style.colour, ms=8, mew=1.3, ls="none",
            zorder=2,
        )  # fmt: skip
    for line in there.loc[there["method"] == REFERENCE, "mean"]:
        axes.axhline(line, color=INK, linestyle=":", linewidth=1.1, zorder=1)
    return not there.empty


def _paper_handles(label: str) -> list[Line2D]:
    """Return the legend entries of the paper's numbers."""
    return [
        published_handle(label),
        Line2D([], [], color=INK, linestyle=":", linewidth=1.1, label="reported reference"),
    ]
