"""FedOL's pseudo-labels by iteration: how many there are, and how many are right (§IV)."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import band_note, in_per_cent, name_axes, panels_of, title
from fedlogit.results.metrics import value
from fedlogit.results.runs.run import Run
from fedlogit.results.style import CATEGORIES, look, wrapped_panels

__all__ = ["by_iteration", "draw"]

_LINES = {
    "pseudo_share": ("Public samples with a pseudo-label", CATEGORIES[0], "o"),
    "pseudo_accuracy": ("Pseudo-labels that are correct", CATEGORIES[1], "s"),
    "server_public_accuracy": (
        "Public samples that the server classifies correctly",
        *look("fedol"),
    ),
}


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset and partition: the mean over seeds by iteration, and their band."""
    panels = panels_of(artefact)
    frame = collect(artefact)
    figure, grid, drawn = wrapped_panels(len(panels), 2, panel=(3.3, 2.4), share_y=True)
    for axes, (name, runs) in zip(drawn, panels.items(), strict=True):
        _panel(axes, [run for _, run in runs])
        axes.set_title(name)
    name_axes(grid, drawn, "Iteration", "Share")
    title(figure, artefact, frame, band_note(frame))
    handles = [
        Line2D([], [], color=colour, marker=marker, label=label)
        for label, colour, marker in _LINES.values()
    ]
    legend(figure, handles)
    return figure


def by_iteration(run: Run, quantity: str) -> np.ndarray:
    """Return a quantity of the last round by iteration.

    Raises:
        FedlogitError: if the run's method has no iterations.
    """
    pattern = re.compile(rf"{quantity}_(\d+)")
    found = {int(m[1]): name for name in map(str, run.rounds) if (m := pattern.fullmatch(name))}
    if not found:
        raise FedlogitError(f"{run.folder}: method {run.spec.method.name} has no {quantity}")
    return np.array([value(run, found[i]) for i in sorted(found)])


def _panel(axes: Axes, runs: list[Run]) -> None:
    for quantity, (_, colour, marker) in _LINES.items():
        rows = np.stack([by_iteration(run, quantity) for run in runs])
        x = np.arange(1, rows.shape[1] + 1)
        axes.plot(x, rows.mean(0), color=colour, marker=marker, ms=4.5)
        axes.fill_between(x, rows.min(0), rows.max(0), color=colour, alpha=0.2, lw=0)
    axes.set_ylim(0, 1.02)
    in_per_cent(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
