"""Accuracy of each method by classes per client, beside the paper's (Who to Trust, Figure 1)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedlogit.results.artefact import REFERENCE, Artefact
from fedlogit.results.collect import collect, summarise
from fedlogit.results.figures._parts import (
    bars,
    competitors,
    legend,
    method_handle,
    reference_handle,
    reference_line,
    title,
    values,
)
from fedlogit.results.metrics import metric_label
from fedlogit.results.style import GREY, INK, look, new_figure

__all__ = ["draw"]


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset: partitions across, a line per method, the reference dashed.

    Bars are standard deviations over seeds. The paper's numbers are hollow markers, and its
    reference a dotted line, at any scale.
    """
    frame = collect(artefact)
    shown = competitors(frame)
    datasets, methods = values(shown, "dataset"), values(shown, "method")
    partitions = values(shown, "partition")
    figure, grid = new_figure(1, len(datasets), panel=(4.0, 3.1))
    has_reference = has_paper = False
    for axes, dataset in zip(grid.flat, datasets, strict=True):
        here = frame[frame["dataset"] == dataset]
        has_reference |= reference_line(axes, here, artefact.metric)
        _lines(axes, artefact, competitors(here), partitions, methods)
        has_paper |= _paper(axes, artefact.metric, dataset, partitions, methods, reference)
        axes.set_title(artefact.label(dataset))
        axes.set_xticks(range(len(partitions)), [artefact.label(p) for p in partitions])
        axes.set_xlim(-0.4, len(partitions) - 0.6)
    grid[0, 0].set_ylabel(metric_label(artefact.metric).capitalize())
    handles = [method_handle(artefact, method) for method in methods]
    handles += [reference_handle(artefact)] if has_reference else []
    handles += _paper_handles() if has_paper else []
    title(figure, artefact, frame, bars(frame))
    legend(figure, handles)
    return figure


def _dodge(methods: list[str]) -> np.ndarray:
    """Return how far each method is moved sideways, so that none hides another."""
    return (np.arange(len(methods)) - (len(methods) - 1) / 2) * min(0.09, 0.5 / len(methods))


def _lines(
    axes: Axes, artefact: Artefact, runs: pd.DataFrame, partitions: list[str], methods: list[str]
) -> None:
    cells = summarise(runs, ["partition", "method"], artefact.metric)
    for method, shift in zip(methods, _dodge(methods), strict=True):
        own = cells[cells["method"] == method].set_index("partition").reindex(partitions)
        colour, marker = look(method)
        axes.errorbar(
            np.arange(len(partitions)) + shift,
            own["mean"],
            yerr=own["std"].fillna(0),
            color=colour,
            marker=marker,
            capsize=2.5,
            elinewidth=1.2,
            zorder=3,
        )


def _paper(
    axes: Axes,
    metric: str,
    dataset: str,
    partitions: list[str],
    methods: list[str],
    reference: pd.DataFrame | None,
) -> bool:
    """Add the paper's numbers; return whether it has any for this panel."""
    if reference is None:
        return False
    there = reference[(reference["dataset"] == dataset) & (reference["metric"] == metric)]
    for method, shift in zip(methods, _dodge(methods), strict=True):
        own = there[there["method"] == method].drop_duplicates("partition")
        own = own[own["partition"].isin(partitions)]
        x = np.array([partitions.index(p) for p in own["partition"]]) + shift
        colour, marker = look(method)
        axes.plot(
            x, own["mean"], marker, mfc="white", mec=colour, ms=8, mew=1.3, ls="none", zorder=2
        )
    for line in there.loc[there["method"] == REFERENCE, "mean"]:
        axes.axhline(line, color=INK, linestyle=":", linewidth=1.1, zorder=1)
    return not there.empty


def _paper_handles() -> list[Line2D]:
    """Return the legend entries of the paper's numbers."""
    hollow = {"mfc": "white", "mec": GREY, "ms": 8, "mew": 1.3, "ls": "none"}
    return [
        Line2D([], [], marker="o", label="reported in the paper", **hollow),  # type: ignore[arg-type]
        Line2D([], [], color=INK, linestyle=":", linewidth=1.1, label="reported reference"),
    ]
