"""Mean accuracy over peers by round and its spread, a panel per method (TallyTrain, Figure 2)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import PeerBands
from fedlogit.results.collect import collect, curves
from fedlogit.results.figures._legend import DASHES, family_look, legend
from fedlogit.results.figures._panels import (
    axis_label,
    in_per_cent,
    name_axes,
    runs_of,
    title,
    values,
)
from fedlogit.results.style import GREY, INK, wrapped_panels

__all__ = ["CELL", "draw"]

CELL = ("dataset", "method")

_ACROSS = 5  # panels in a row, at most
_FAINT = "#9a9a9a"
_BANDS = {
    "std": "± one standard deviation over peers",
    "range": "from the minimum to the maximum over peers",
}


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a row of panels per dataset: the mean over peers, and how far they are from it.

    With several seeds, the mean and what the band is made of are each the mean over seeds.
    """
    options = artefact.read_options(PeerBands)
    peers = sorted({run.spec.clients for _, run in runs_of(artefact)})
    frame = curves(artefact).dropna(subset=["accuracy"])
    panels = frame[["dataset", "method"]].drop_duplicates().to_numpy().tolist()
    figure, grid, drawn = wrapped_panels(len(panels), _ACROSS, panel=(2.4, 2.2), share_y=True)
    for axes, (dataset, method) in zip(drawn, panels, strict=True):
        here = frame[frame["dataset"] == dataset]
        for other, dash in _beside(here, options, method):
            mean = _by_round(here, other)["accuracy"]
            axes.plot(mean.index, mean, color=_FAINT, lw=1.1, ls=dash, zorder=1)
        _draw_band(axes, _by_round(here, method), family_look(method).colour, options.band)
        several = frame["dataset"].nunique() > 1
        axes.set_title(f"{artefact.label(method)}{f', {artefact.label(dataset)}' * several}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    for row in grid:
        in_per_cent(row[0].yaxis)
    name_axes(grid, drawn, "Round", axis_label(artefact, "accuracy"))
    title(figure, artefact, collect(artefact), f"{', '.join(map(str, peers))} peers")
    grey = {artefact.label(name): dash for name, dash in _beside(frame, options)}
    averaged = ", mean over seeds" if frame["seed"].nunique() > 1 else ""
    legend(figure, _handles(_BANDS[options.band] + averaged, grey))
    return figure


def _beside(frame: pd.DataFrame, options: PeerBands, but: str = "") -> list[tuple[str, str]]:
    """Return the methods to compare with that were run, `but` one, and how their lines look."""
    known = set(values(frame, "method")) - {but}
    styled = zip(options.beside, itertools.cycle(DASHES), strict=False)
    return [(method, dash) for method, dash in styled if method in known]


def _by_round(runs: pd.DataFrame, method: str) -> pd.DataFrame:
    columns = ["accuracy", "accuracy_std", "accuracy_min", "accuracy_max"]
    known = [column for column in columns if column in runs]
    return runs[runs["method"] == method].groupby("round")[known].mean()


def _draw_band(axes: Axes, own: pd.DataFrame, colour: str, band: str) -> None:
    marker = "o" if len(own) == 1 else ""  # a line through a single round would not be seen
    axes.plot(own.index, own["accuracy"], color=colour, marker=marker, zorder=3)
    if band == "std" and "accuracy_std" in own:
        low, high = own["accuracy"] - own["accuracy_std"], own["accuracy"] + own["accuracy_std"]
    elif band == "range" and {"accuracy_min", "accuracy_max"} <= set(own):
        low, high = own["accuracy_min"], own["accuracy_max"]
    else:  # a global model, or runs that did not measure it
        return
    axes.fill_between(own.index, low, high, color=colour, alpha=0.25, lw=0, zorder=2)


def _handles(band: str, grey: Mapping[str, str]) -> list[Line2D | Patch]:
    return [
        Line2D([], [], color=INK, label="mean over peers"),
        Patch(color=GREY, alpha=0.3, lw=0, label=band),
        *(
            Line2D([], [], color=_FAINT, lw=1.1, ls=d, label=f"mean of {n}")
            for n, d in grey.items()
        ),
    ]
