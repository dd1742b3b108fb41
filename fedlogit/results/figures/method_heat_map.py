"""A metric of every method under every heterogeneity: a cell each, the best of a column in bold."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect, competitors, summarise
from fedlogit.results.figures._panels import heat_map, metric_name, title, values, wrapped_labels
from fedlogit.results.style import new_figure

__all__ = ["draw", "ordered"]


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset: methods down, the best on average first; partitions across.

    A cell is the mean over seeds, in per cent. Methods are ordered by their mean over the
    partitions that all of them have.
    """
    frame = collect(artefact)
    shown = competitors(frame)
    datasets, partitions = values(shown, "dataset"), values(shown, "partition")
    size = (1.9 + 0.85 * len(partitions), 0.27 * shown["method"].nunique() + 0.7)
    figure, grid = new_figure(1, len(datasets), panel=size)
    for axes, dataset in zip(grid.flat, datasets, strict=True):
        cells = summarise(
            shown[shown["dataset"] == dataset], ["method", "partition"], artefact.metric
        )
        table = 100 * cells.pivot(index="method", columns="partition", values="mean")
        _panel(axes, artefact, ordered(table[[p for p in partitions if p in table]]))
        if len(datasets) > 1:  # the subtitle names a single one
            axes.set_title(artefact.label(dataset))
    shown_metric = metric_name(artefact, artefact.metric)
    bold = "bold: highest mean of a column; rows by mean; standard deviations in the table"
    title(figure, artefact, frame, f"{shown_metric} [%]; {bold}")
    return figure


def ordered(table: pd.DataFrame) -> pd.DataFrame:
    """Return methods in decreasing order of mean over the columns in which none is missing."""
    whole = table.dropna(axis="columns")
    return table.loc[whole.mean(axis=1).sort_values(ascending=False, kind="stable").index]


def _panel(axes: Axes, artefact: Artefact, table: pd.DataFrame) -> None:
    labels = {
        "xticklabels": wrapped_labels(artefact, table.columns),
        "yticklabels": [artefact.label(name) for name in table.index],
    }
    heat_map(axes, table, ".1f", **labels)
    printed = table.round(1).to_numpy()
    best = set(zip(*np.nonzero(printed == np.nanmax(printed, axis=0)), strict=True))  # and ties
    for text in axes.texts:
        x, y = text.get_position()
        if (int(y), int(x)) in best:
            text.set_fontweight("bold")
    axes.set(xlabel="", ylabel="")
