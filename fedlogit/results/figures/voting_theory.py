"""Quantities of TallyTrain's theory (§3.3) by round: vote accuracy, disagreement, variance."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect, curves
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import (
    band_note,
    in_per_cent,
    log_axis_note,
    log_ticks,
    own_axes_note,
    panels_of,
    title,
)
from fedlogit.results.style import CATEGORIES, GREY, INK, look, new_figure

__all__ = ["CELL", "draw"]

CELL = ("dataset", "method")

_VOTES, _SOFT = look("tally_train").colour, look("fedmd").colour  # the methods that send them
_PANELS = (
    (
        "Proposition 1: vote accuracy",
        "Accuracy on probes",
        (
            ("theory_vote_accuracy", "majority vote", _VOTES, "-"),
            ("theory_soft_accuracy", "mean softmax", _SOFT, "-"),
            ("theory_peer_accuracy", "mean over peers", GREY, "-"),
            ("theory_peer_least", "minimum over peers", GREY, "--"),
            ("theory_bound", "bound, where all peers are above 50%", INK, ":"),
        ),
    ),
    (
        "Lemma 1: disagreement of peers",
        "KL divergence [nats]",
        (("theory_disagreement", "mean over pairs of peers", CATEGORIES[0], "-"),),
    ),
    (
        "Proposition 2: variance of gradients",
        "Gradient variance",
        (
            ("theory_variance_hard", "votes as target", _VOTES, "--"),
            ("theory_variance_soft", "mean softmax as target", _SOFT, "--"),
        ),
    ),
)


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a row per dataset and method, means over seeds; the dotted line is the warm-up's end.

    Raises:
        FedlogitError: if the runs did not measure it.
    """
    frame = curves(artefact)
    if "theory_disagreement" not in frame:
        raise FedlogitError(f"{artefact.name}: its runs lack export: [theory]")
    frame = frame.dropna(subset=["theory_disagreement"])
    rows = list(frame.groupby(["dataset", "method"], sort=False))
    several = len({dataset for (dataset, _), _ in rows}) > 1  # the subtitle names a single one
    warm = _warm_up(artefact)
    figure, grid = new_figure(len(rows), len(_PANELS), panel=(3.6, 2.5))
    for line, ((dataset, method), own) in zip(grid, rows, strict=True):
        of = [artefact.label(method), *([artefact.label(dataset)] if several else [])]
        for axes, (name, label, series) in zip(line, _PANELS, strict=True):
            _panel(axes, own, series)
            axes.set_ylabel(label)
            axes.set_title(f"{name}\n{', '.join(of)}")
            if method in warm:
                axes.axvline(warm[method], color=INK, ls=":", lw=1.0, zorder=1)
        in_per_cent(line[0].yaxis)
        line[1].set_ylim(bottom=0)
        line[2].set_yscale("log")
        log_ticks(line[2].yaxis)
    for axes in grid[-1]:
        axes.set_xlabel("Round")
    measured = set(frame.columns[frame.notna().any()])
    seen = [s for *_, series in _PANELS for s in series if s[0] in measured]
    no_bound = "bound not drawn: it needs every peer above 50% accuracy"
    notes = ["dotted: the warm-up ends and votes begin"]
    notes += ["" if "theory_bound" in measured else no_bound, band_note(frame)]
    variances = [name for name, *_ in _PANELS[2][2] if name in measured]
    notes.append(log_axis_note(frame[variances]))
    notes += [note for column in grid.T if (note := own_axes_note(list(column), "row"))][:1]
    title(figure, artefact, collect(artefact), *notes)
    handles = [Line2D([], [], color=c, ls=ls, label=label) for _, label, c, ls in seen]
    legend(figure, handles)
    return figure


def _warm_up(artefact: Artefact) -> dict[str, int]:
    """Return the last round of warm-up of each method that has one."""
    pairs = [pair for panel in panels_of(artefact).values() for pair in panel]
    found = {str(ref.axes["method"]): run.spec.method.params.get("warm_up") for ref, run in pairs}
    return {method: rounds for method, rounds in found.items() if rounds}


def _panel(axes: Axes, runs: pd.DataFrame, series: tuple[tuple[str, str, str, str], ...]) -> None:
    for column, _, colour, dash in series:
        if column in runs and runs[column].notna().any():
            drawn = runs.groupby("round")[column].agg(["mean", "min", "max"])
            axes.plot(drawn.index, drawn["mean"], color=colour, ls=dash, lw=1.6)
            axes.fill_between(
                drawn.index, drawn["min"], drawn["max"], color=colour, alpha=0.12, lw=0
            )
    if not any(column in runs for column, *_ in series):
        axes.text(0.5, 0.5, "labels unknown", transform=axes.transAxes, ha="center", color=GREY)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
