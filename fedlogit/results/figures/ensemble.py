"""Accuracy of a single client, of pseudo-labels, and of the oracle, on the public set (ours)."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._parts import all_diverged, bars, in_per_cent, legend, title, values
from fedlogit.results.style import GREY, INK, looks, new_figure

__all__ = ["draw"]

_ALONE, _TARGETS, _ORACLE = "client_public_accuracy", "target_accuracy", "oracle_accuracy"
_PSEUDO = "pseudo-labels (in the method's colour)"
_ANYBODY = "oracle (at least one client is right)"


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per partition and a line per method, all on the public set.

    A line goes from the mean accuracy of a client to the share of samples on which at least one
    client is right; the mark in a method's colour is how often its targets are.
    """
    frame = collect(artefact, (_ALONE, _TARGETS, _ORACLE))
    frame = frame[~frame["diverged"]]
    if frame.empty:
        raise all_diverged(artefact)
    panels = list(frame.groupby(["dataset", "partition"], sort=False))
    methods = values(frame, "method")
    figure, grid = new_figure(1, len(panels), panel=(3.6, 0.9 + 0.35 * len(methods)))
    lowest, highest = _drawn_range(frame)
    margin = 0.06 * (highest - lowest)
    for axes, ((dataset, partition), runs) in zip(grid.flat, panels, strict=True):
        _panel(axes, runs, methods)
        axes.set_title(artefact.place_label(dataset, partition))
        axes.set_yticks(range(len(methods)), [artefact.label(method) for method in methods])
        axes.invert_yaxis()
        axes.set_xlabel("Accuracy on the public set")
        in_per_cent(axes.xaxis)
        axes.set_xlim(lowest - margin, highest + margin)  # one range for all, so that they compare
    title(figure, artefact, frame, bars(frame))
    legend(figure, _handles())
    return figure


def _drawn_range(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the least and the largest of what is drawn: means, and the ends of whiskers."""
    cells = frame.groupby(["dataset", "partition", "method"])
    means = cells[[_ALONE, _TARGETS, _ORACLE]].mean()
    reach = cells[_TARGETS].std().fillna(0)
    means = means.assign(low=means[_TARGETS] - reach, high=means[_TARGETS] + reach)
    return float(means.to_numpy().min()), float(means.to_numpy().max())


def _panel(axes: Axes, runs: pd.DataFrame, methods: list[str]) -> None:
    for row, (method, (colour, marker)) in enumerate(looks(methods).items()):
        own = runs[runs["method"] == method]
        if own.empty:
            continue
        alone, oracle = own[_ALONE].mean(), own[_ORACLE].mean()
        axes.plot([alone, oracle], [row, row], color=GREY, linewidth=1.2, zorder=1)
        axes.plot(alone, row, "|", color=INK, ms=10, mew=1.6)
        axes.plot(oracle, row, "o", mfc="white", mec=INK, ms=6)
        spread = own[_TARGETS].std() if len(own) > 1 else 0.0
        axes.errorbar(own[_TARGETS].mean(), row, xerr=spread, color=colour, marker=marker)
    axes.set_ylim(-0.6, len(methods) - 0.4)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")


def _handles() -> list[Line2D]:
    return [
        Line2D([], [], color=INK, marker="|", ms=10, mew=1.6, ls="none", label="single client"),
        Line2D([], [], color=GREY, marker="o", ls="none", label=_PSEUDO),
        Line2D([], [], marker="o", mfc="white", mec=INK, ls="none", label=_ANYBODY),
    ]
