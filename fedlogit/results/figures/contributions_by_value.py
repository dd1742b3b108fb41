"""Each client's contribution against its exact Shapley value, a panel per method."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import Contribution
from fedlogit.results.analyses.contribution import (
    ContributionsBesideShapley,
    contributions_beside_shapley,
    correlations,
)
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import name_axes, title
from fedlogit.results.style import GREY, category_look, in_order, wrapped_panels

__all__ = ["correlation", "draw"]

_ACROSS = 3  # panels in a row, at most
_LEAST = 0.1  # of shares, that a panel's height is, so that equal shares look equal


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a point per client and seed, coloured by partition; each panel has a height of its own.

    Contributions are shares of the sum of their sizes within a run, Shapley values in points of
    accuracy; the options are those of the table `contribution`.
    """
    options = artefact.read_options(Contribution)
    found = list(contributions_beside_shapley(artefact, options))
    methods = in_order(dict.fromkeys(one.method for one in found))
    partitions = list(dict.fromkeys(one.partition for one in found))
    size = (2.7, 2.5)
    figure, grid, drawn = wrapped_panels(len(methods), _ACROSS, panel=size, share_x=True)
    for axes, method in zip(drawn, methods, strict=True):
        own = [one for one in found if one.method == method]
        _panel(axes, own, partitions)
        name = f"{artefact.label(method)}\n{correlation(artefact, own)}"
        axes.set_title(name, fontsize="small")
    name_axes(grid, drawn, "Shapley value [points]", "Contribution [share]")
    notes = ("rank correlations are means over runs", "dotted: equal shares")
    title(figure, artefact, collect(artefact), *notes, "every panel has its own vertical axis")
    legend(figure, [_handle(i, artefact.label(name)) for i, name in enumerate(partitions)])
    return figure


def _panel(axes: Axes, found: list[ContributionsBesideShapley], partitions: list[str]) -> None:
    for place, partition in enumerate(partitions):
        own = [one for one in found if one.partition == partition]
        look = category_look(place)
        if own:
            axes.plot(
                100 * np.concatenate([one.values for one in own]),
                np.concatenate([_shares(one.contributions) for one in own]),
                look.marker, color=look.colour, ms=5, alpha=0.8,
            )  # fmt: skip
    axes.axhline(1 / len(found[0].values), color=GREY, lw=0.8, ls=":")
    low, high = axes.get_ylim()
    more = max(0.0, _LEAST - (high - low)) / 2
    axes.set_ylim(low - more, high + more)


def _handle(place: int, name: str) -> Line2D:
    """Return the legend entry of a partition."""
    colour, marker = category_look(place)
    return Line2D([], [], color=colour, marker=marker, ls="none", alpha=0.8, label=name)


def _shares(contributions: np.ndarray) -> np.ndarray:
    """Return contributions as shares of the sum of their sizes."""
    total = np.abs(contributions).sum()
    return contributions / total if total else contributions


def correlation(artefact: Artefact, own: list[ContributionsBesideShapley]) -> str:
    """Return the mean correlation of a method, and of which partitions it is if not of all."""
    known = correlations(own)
    if not len(known):
        return "equal shares"
    ranked = dict.fromkeys(one.partition for one in own if len(correlations([one])))
    some = len(ranked) < len({one.partition for one in own})
    of = f" ({', '.join(map(artefact.label, ranked))} only)" if some else ""
    mean = f"{known.mean():.2f}".replace("-", "\N{MINUS SIGN}")
    return f"rank correlation {mean}{of}"
