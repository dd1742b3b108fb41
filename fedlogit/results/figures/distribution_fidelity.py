"""The true class distribution beside the one estimated from CELM's evidence (CELM Figure 5)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedlogit.papers.artefact import Artefact
from fedlogit.results.bubbles import bubbles
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import in_per_cent, own_axes_note, panel_name, runs_of, title
from fedlogit.results.metrics.celm import final_evidence
from fedlogit.results.style import CATEGORIES, look, new_figure

__all__ = ["draw"]

_TRUE, _ESTIMATED = CATEGORIES[0], look("celm").colour


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a row per run: true and estimated joint distribution, then both margins.

    All are shares of the total, since evidence has no unit.
    """
    runs = list(runs_of(artefact))
    figure, grid = new_figure(len(runs), 4, panel=(3.1, 2.5))
    for row, (ref, run) in zip(grid, runs, strict=True):
        true, found = (m / m.sum() for m in (run.counts(), final_evidence(run)))
        largest = max(true.max(), found.max())
        bubbles(row[0], true, largest, colour=_TRUE)
        bubbles(row[1], found, largest, colour=_ESTIMATED)
        _margins(row[2], true.sum(axis=1), found.sum(axis=1), "Client")
        _margins(row[3], true.sum(axis=0), found.sum(axis=0), "Class")
        row[0].set_xlabel(f"Class (largest bubble of the row: {largest:.1%})")
        row[0].set_title(f"{panel_name(artefact, ref)}: true")
        row[1].set_title("estimated by CELM")
        row[2].set_title("share of each client")
        row[3].set_title("share of each class")
    own_axes = own_axes_note(list(grid[:, 2:].flat), "panel of bars")
    title(figure, artefact, collect(artefact), "area of a bubble: share of all samples", own_axes)
    handles = [
        Line2D([], [], color=colour, marker="o", lw=0, label=label)
        for colour, label in ((_TRUE, "true"), (_ESTIMATED, "estimated by CELM"))
    ]
    legend(figure, handles)
    return figure


def _margins(axes: Axes, true: np.ndarray, found: np.ndarray, what: str) -> None:
    places = np.arange(len(true))
    axes.bar(places - 0.2, true, width=0.38, color=_TRUE)
    axes.bar(places + 0.2, found, width=0.38, color=_ESTIMATED)
    axes.set_xticks(places[:: max(1, len(places) // 12)])
    axes.set_xlabel(what)
    in_per_cent(axes.yaxis)
