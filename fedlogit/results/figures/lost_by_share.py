"""Accuracy lost against the share of adversaries, a panel for each of their attacks."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedlogit.adversaries import Adversaries
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import Lost
from fedlogit.results.analyses.lost import losses
from fedlogit.results.collect import collect
from fedlogit.results.figures._beside import MOVED, line_shifts, moved
from fedlogit.results.figures._legend import Stroke, legend, method_handle, strokes
from fedlogit.results.figures._panels import (
    DIFFERENCES,
    POINTS_LOST,
    line_with_bars,
    own_axes_note,
    title,
    values,
)
from fedlogit.results.style import GREY, new_figure

__all__ = ["draw"]


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a row of panels per data set and partition, an attack each, and a line per method.

    The options are those of the table `lost`, whose conditions are values of a spec's
    `adversaries`. Lines begin at 0 without adversaries. Methods that an attack is not for are named
    in its panel.
    """
    options = artefact.read_options(Lost)
    shown = _rows_with_adversaries(artefact, options, losses(artefact, options))
    places = list(shown.groupby(["dataset", "partition"], sort=False))
    attacks = values(shown, "attack")
    styles = strokes(values(shown[shown["cannot"] == ""], "method"))
    figure, grid = new_figure(len(places), len(attacks), panel=(3.1, 2.5), share_y="row")
    datasets = shown["dataset"].nunique()
    for row, ((dataset, partition), here) in zip(grid, places, strict=True):
        for axes, attack in zip(row, attacks, strict=True):
            _panel(axes, artefact, here[here["attack"] == attack], styles)
            name = artefact.place_label(dataset, partition, several=datasets > 1)
            axes.set_title(f"{name}: {artefact.label(attack, options.condition).lower()}")
        row[0].set_ylabel(POINTS_LOST)
    for axes in grid[-1]:
        axes.set_xlabel("Adversaries, % of the clients")
    several = shown["n"].max() > 1
    bars = f"{DIFFERENCES}; bars: standard deviation{MOVED}" if several else ""
    title(figure, artefact, collect(artefact), bars, own_axes_note(list(grid[:, 0]), "row"))
    legend(figure, [method_handle(artefact, *item) for item in styles.items()])
    return figure


def _rows_with_adversaries(
    artefact: Artefact, options: Lost, numbers: pd.DataFrame
) -> pd.DataFrame:
    """Return the rows with adversaries, with their `attack` and `share`."""
    known = {
        artefact.label(text, options.condition): Adversaries.model_validate_json(text)
        for text in artefact.in_order(options.condition)
        if text != "all"
    }
    rows = numbers[numbers["condition"].isin(known)]
    present = [known[condition] for condition in rows["condition"]]
    return rows.assign(attack=[a.attack for a in present], share=[a.share for a in present])


def _panel(axes: Axes, artefact: Artefact, runs: pd.DataFrame, styles: dict[str, Stroke]) -> None:
    axes.axhline(0, color=GREY, linewidth=0.8)
    able = runs[runs["cannot"] == ""].sort_values("share")
    lines = [able[able["method"] == method] for method in styles]
    shifts = line_shifts([[0.0, *(100 * own["share"])] for own in lines])
    for own, style, shift in zip(lines, styles.values(), shifts, strict=True):
        if own.empty:
            continue
        own = pd.concat([own.head(1).assign(share=0.0, lost=0.0, lost_std=0.0), own])
        x, y, std = (100 * own[name] for name in ("share", "lost", "lost_std"))
        line_with_bars(axes, moved(x, shift | {0.0: 0.0}), y, std, style, zorder=2)
    if unable := values(runs[runs["cannot"] != ""], "method"):
        names = ", ".join(artefact.label(name) for name in unable)
        axes.annotate(
            f"n/a: {names}", (0.03, 0.95), xycoords="axes fraction", fontsize=8, color=GREY,
            style="italic", va="top",
        )  # fmt: skip
    axes.set_xticks([0.0, *sorted(100 * runs["share"].unique())])
    axes.xaxis.set_major_formatter("{x:.0f}")
