"""Each client's contribution against its exact Shapley value, a panel per method."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedlogit.results.analyses.contribution import Compared, Options, compared, correlations
from fedlogit.results.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._parts import title
from fedlogit.results.style import GREY, MARKERS, PALETTE, in_order, new_figure

__all__ = ["draw"]

_COLOURS = ("blue", "orange", "green")


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a point per client and seed, coloured by partition.

    Contributions are shares of the sum of their sizes within a run, Shapley values in points of
    accuracy; the options are those of the table `contribution`.
    """
    options = Options.read(artefact.options, f"{artefact.name}: options")
    found = list(compared(artefact, options))
    methods = in_order(dict.fromkeys(one.method for one in found))
    partitions = list(dict.fromkeys(one.partition for one in found))
    figure, grid = new_figure(1, len(methods), panel=(2.5, 2.6), share_y="row")
    for axes, method in zip(grid[0], methods, strict=True):
        for place, partition in enumerate(partitions):
            own = [o for o in found if (o.method, o.partition) == (method, partition)]
            if own:
                axes.plot(
                    100 * np.concatenate([o.values for o in own]),
                    np.concatenate([_shares(o.contributions) for o in own]),
                    MARKERS[place], color=PALETTE[_COLOURS[place % 3]], ms=5, alpha=0.8,
                    label=artefact.label(partition),
                )  # fmt: skip
        axes.axhline(1 / len(found[0].values), color=GREY, lw=0.8, ls=":")
        axes.set_title(f"{artefact.label(method)}\n{_correlation(found, method)}", fontsize="small")
        axes.set_xlabel("Shapley value [points]")
    grid[0, 0].set_ylabel("Contribution [share]")
    grid[0, -1].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    title(figure, artefact, collect(artefact), "dotted: equal shares")
    return figure


def _shares(contributions: np.ndarray) -> np.ndarray:
    """Return contributions as shares of the sum of their sizes."""
    total = np.abs(contributions).sum()
    return contributions / total if total else contributions


def _correlation(found: list[Compared], method: str) -> str:
    known = correlations(one for one in found if one.method == method)
    return f"rank correlation {known.mean():.2f}" if len(known) else "equal shares"
