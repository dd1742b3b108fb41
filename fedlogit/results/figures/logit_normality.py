"""Quantiles and histogram of held-out logits beside those of a Gaussian (Who to Trust §3.1.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.results.analyses.normality import KINDS, standardised
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import own_axes_note, panels_of, title
from fedlogit.results.style import CATEGORIES, INK, new_figure

__all__ = ["draw", "quantiles"]

_REACH = 4.2  # standard deviations that are shown
_SHOWN = 200  # quantiles
_LOOKS: dict[str, dict[str, Any]] = {
    kind: {"color": colour, "ls": dash}
    for kind, colour, dash in zip(KINDS, CATEGORIES, ("-", "-.", ":"), strict=False)
}


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a column per dataset and partition.

    Every logit is standardised within its client's held-out samples of one class. Above, quantiles
    of them all against those of a Gaussian, by what the logit is of; below, their histogram.
    """
    panels = panels_of(artefact)
    figure, grid = new_figure(2, len(panels), panel=(3.9, 2.6))
    for (name, runs), above, below in zip(panels.items(), grid[0], grid[1], strict=True):
        values: dict[str, list[np.ndarray]] = {}
        for _, run in runs:
            for kind, column in standardised(run):
                values.setdefault(kind, []).append(column)
        if not values:
            raise FedlogitError(f"{artefact.name}: {name} has too few held-out samples of a class")
        of_kind = {kind: np.concatenate(values[kind]) for kind in KINDS if kind in values}
        _quantile_plot(above, of_kind)
        _histogram(below, of_kind)
        above.set_title(name)
        above.set_xlabel("Quantile of a Gaussian [standard deviations]")
        below.set_xlabel("Logit, standardised within client and class")
    grid[0, 0].set_ylabel("Quantile of logits")
    grid[1, 0].set_ylabel("Density")
    title(figure, artefact, collect(artefact), own_axes_note(list(grid[1]), "histogram"))
    legend(figure, grid[0, 0].get_legend_handles_labels()[0])
    return figure


def quantiles(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return quantiles of a standard Gaussian and of values, at the same 200 shares, (200,)."""
    shares = (np.arange(_SHOWN) + 0.5) / _SHOWN
    return scipy.stats.norm.ppf(shares), np.quantile(values, shares)


def _quantile_plot(axes: Axes, of_kind: dict[str, np.ndarray]) -> None:
    for kind, values in of_kind.items():
        label = f"logit for {KINDS[kind].lower()}"
        axes.plot(*quantiles(values), **_LOOKS[kind], lw=1.6, label=label)
    axes.axline((0, 0), slope=1, color=INK, ls="--", lw=1, label="Gaussian")
    axes.set(xlim=(-3.2, 3.2), ylim=(-_REACH, _REACH))


def _histogram(axes: Axes, of_kind: dict[str, np.ndarray]) -> None:
    bins = np.linspace(-_REACH, _REACH, 57).tolist()
    for kind, values in of_kind.items():
        axes.hist(values, bins, density=True, histtype="step", **_LOOKS[kind], lw=1.4)
    x = np.linspace(-_REACH, _REACH, 200)
    axes.plot(x, scipy.stats.norm.pdf(x), color=INK, ls="--", lw=1)
    axes.set(xlim=(-_REACH, _REACH))
