"""Accuracy of a single client, of pseudo-labels, and of the oracle, on the public set (ours)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.axis_values import run_place
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend
from fedlogit.results.figures._panels import (
    all_diverged,
    bars_note,
    in_per_cent,
    name_axes,
    runs_of,
    title,
    values,
)
from fedlogit.results.style import GREY, INK, Look, category_look, looks, wrapped_panels

__all__ = ["draw"]

_ALONE, _TARGETS, _ORACLE = "client_public_accuracy", "target_accuracy", "oracle_accuracy"
_NOTE = "oracle: public samples that at least one client classifies correctly"


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per partition and a row per method, all on the public set.

    A line goes from the mean accuracy of a client to that of a method's pseudo-labels. The oracle's
    accuracy, so high that it would press all others together, is written above the panel.
    """
    frame = collect(artefact, (_ALONE, _TARGETS, _ORACLE))
    frame = frame[~frame["diverged"]]
    if frame.empty:
        raise all_diverged(artefact)
    panels = list(frame.groupby(["dataset", "partition"], sort=False))
    methods = values(frame, "method")
    styles = _looks(artefact, methods)
    size = (4.2, 0.9 + 0.25 * len(methods))
    figure, grid, drawn = wrapped_panels(len(panels), 2, panel=size, share_x=True, share_y=True)
    several = frame["dataset"].nunique() > 1
    for axes, ((dataset, partition), runs) in zip(drawn, panels, strict=True):
        _panel(axes, runs, styles)
        name = artefact.place_label(dataset, partition, several=several)
        axes.set_title(f"{name} (oracle: {_oracle(runs)})")
    drawn[0].set_yticks(range(len(methods)), [artefact.label(method) for method in methods])
    drawn[0].set_ylim(len(methods) - 0.4, -0.6)
    in_per_cent(drawn[0].xaxis)
    name_axes(grid, drawn, "Accuracy on the public set")
    title(figure, artefact, frame, bars_note(frame), _NOTE)
    legend(figure, _handles())
    return figure


def _looks(artefact: Artefact, methods: Sequence[str]) -> dict[str, Look]:
    """Return how each row is drawn; a function in the place of a method like no method."""
    functions = {
        str(run_place(run.spec, ref.axes)["method"]): None
        for ref, run in runs_of(artefact)
        if run.spec.method.name == "aggregator"
    }
    chosen = looks([method for method in methods if method not in functions])
    chosen |= {method: category_look(place) for place, method in enumerate(functions)}
    return {method: chosen[method] for method in methods}


def _oracle(runs: pd.DataFrame) -> str:
    """Return the oracle's mean accuracy; its range where methods have clients of their own."""
    means = runs.groupby("method")[_ORACLE].mean()
    ends = dict.fromkeys(f"{100 * mean:.1f}" for mean in (means.min(), means.max()))
    return "–".join(ends) + "%"


def _panel(axes: Axes, runs: pd.DataFrame, styles: Mapping[str, Look]) -> None:
    for row, (method, (colour, marker)) in enumerate(styles.items()):
        own = runs[runs["method"] == method]
        if own.empty:
            continue
        alone, targets = own[_ALONE].mean(), own[_TARGETS].mean()
        axes.plot([alone, targets], [row, row], color=GREY, linewidth=1.2, zorder=1)
        axes.plot(alone, row, "|", color=INK, ms=10, mew=1.6)
        spread = own[_TARGETS].std() if len(own) > 1 else 0.0
        axes.errorbar(targets, row, xerr=spread, color=colour, marker=marker, capsize=2.5)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")


def _handles() -> list[Line2D]:
    pseudo = "pseudo-labels (in the method's colour)"
    return [
        Line2D([], [], color=INK, marker="|", ms=10, mew=1.6, ls="none", label="single client"),
        Line2D([], [], color=GREY, marker="o", ls="none", label=pseudo),
    ]
