"""Contribution of each client by round, as each method estimates it (CELM §6.2)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.axis_values import run_place
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import (
    own_axes_note,
    panel_name,
    runs_of,
    seeds_if_fewer,
    title,
)
from fedlogit.results.runs.run import Run
from fedlogit.results.style import CATEGORIES, GREY, new_figure

__all__ = ["draw"]

_PANEL = ["dataset", "partition"]
_LOOKS = {
    "": (CATEGORIES[3], "-", 0.9),
    "free rider": (CATEGORIES[2], "--", 1.8),
    "maverick": (CATEGORIES[0], "-", 1.8),
}  # by role: colour, style and width


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a row per dataset and partition, a column per method, a line per client and seed."""
    numbers = collect(artefact)
    cells: dict[str, dict[str, list[Run]]] = {}
    for ref, run in runs_of(artefact):
        place = run_place(run.spec, ref.axes)
        here = numbers[(numbers[_PANEL] == [place[axis] for axis in _PANEL]).all(axis=1)]
        name = panel_name(artefact, ref) + seeds_if_fewer(here, numbers)
        of_panel = cells.setdefault(name, {})
        of_panel.setdefault(str(place["method"]), []).append(run)
    methods = list(dict.fromkeys(method for row in cells.values() for method in row))
    figure, grid = new_figure(len(cells), len(methods), panel=(2.6, 2.1), share_y="row")
    for axes_row, (name, of_panel) in zip(grid, cells.items(), strict=True):
        for axes, method in zip(axes_row, methods, strict=True):
            axes.set_title(f"{artefact.label(method)}\n{name}")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
            for run in of_panel.get(method, []):
                _lines(axes, run)
            if method not in of_panel:
                axes.set_xticks([])
                axes.text(0.5, 0.5, "not run", ha="center", color=GREY, transform=axes.transAxes)
        axes_row[0].set_ylabel("Contribution [share]")
    for axes in grid[-1]:
        axes.set_xlabel("Round")
    own_axes = own_axes_note(list(grid[:, 0]), "row")
    title(figure, artefact, numbers, "one line per client and seed", own_axes)
    looks = [(role or "other client", *look[:2]) for role, look in _LOOKS.items()]
    legend(figure, [Line2D([], [], color=c, ls=s, label=label) for label, c, s in looks])
    return figure


def _lines(axes: Axes, run: Run) -> None:
    shares = run.contributions()
    rounds = np.arange(1, len(shares) + 1)
    for role, series in zip(run.roles().by_client(run.counts()), shares.T, strict=True):
        colour, style, width = _LOOKS[role]
        axes.plot(rounds, series, color=colour, ls=style, lw=width, alpha=0.8)
