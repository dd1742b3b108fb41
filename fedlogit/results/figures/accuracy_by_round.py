"""Accuracy of each method by communication round (Who to Trust A.1 speaks of convergence by 10)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import REFERENCE, Artefact
from fedlogit.papers.axis_values import run_place
from fedlogit.papers.options import ByRound
from fedlogit.results.collect import collect, competitors, curves
from fedlogit.results.figures._legend import (
    Stroke,
    legend,
    method_handle,
    reference_handle,
    strokes,
)
from fedlogit.results.figures._panels import (
    band_note,
    format_axis,
    log_axis_note,
    log_ticks,
    reference_line,
    seeds_if_fewer,
    title,
    values,
)
from fedlogit.results.formatting import sentence
from fedlogit.results.metrics import metric_label
from fedlogit.results.runs.gathered import gather, samples_of
from fedlogit.results.style import PALETTE, new_figure, panel_title
from fedlogit.spec import RunSpec

__all__ = ["CELL", "draw", "last_third"]

CELL = ("dataset", "partition", "method")
_NEAR = 0.12  # of what a row spans: how far below the best a method may end to be shown enlarged
_BANDS = 5  # of methods that can be told apart in a panel
_BAR = 0.022  # of the rounds, from a bar to the next
_THIN = 1.1  # points, of a line that crosses many
_TICK_ROOM = 0.09  # of the rounds, that the number of the last one needs
_FEWEST = 6  # tested rounds of a panel to enlarge: of fewer, two points would be left
_FEW = 3  # panels in a row: titles of more are in two lines


class _Lines(NamedTuple):
    """What all panels have in common.

    Attributes:
        metric: What is drawn.
        strokes: How the line of each method is drawn.
        once: The methods of one round.
        bands: Whether seeds are bands; else bars beside the last round.
    """

    metric: str
    strokes: dict[str, Stroke]
    once: Collection[str]
    bands: bool


class _Late(NamedTuple):
    """What an enlarged panel shows: the last rounds of some methods, the reference if near."""

    rounds: pd.DataFrame
    level: float | None

    def comparable(self) -> bool:
        """Return whether there are two lines at least."""
        return self.rounds["method"].nunique() + (self.level is not None) > 1


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset (down) and partition (across): the mean over seeds by round.

    The option ``across`` names another axis than the partition.

    The band spans the seeds, from the least to the largest; of more methods than bands can be told
    apart, a bar beside the last round does, if nothing is enlarged. The dashed line is where the
    reference ends, whose rounds are not comparable; a method of one round is a dashed line with its
    band, to compare the others' later rounds with. A run that diverged contributes the rounds it
    had. The option ``log`` makes the vertical axis logarithmic. With ``enlarge`` the row below has
    the last third of the rounds of the methods that end near the best, and no other, each panel on
    its own axis; a method that ends far above all others is not enlarged alone.
    """
    final = collect(artefact)
    shown, references = _shown_rounds(artefact, final)
    last = shown.groupby("method")["round"].max()
    options = artefact.read_options(ByRound)
    styles = strokes(values(shown, "method"))
    bands = options.enlarge or len(styles) <= _BANDS
    lines = _Lines(artefact.metric, styles, set(last.index[last == 1]), bands)
    columns = values(shown, "column")
    by_dataset = {
        str(dataset): [runs[runs["column"] == column] for column in columns]
        for dataset, runs in shown.groupby("dataset", sort=False)
    }
    late = _enlarged_rows(by_dataset, references, lines) if options.enlarge else {}
    figure, grid = new_figure(len(by_dataset) + len(late), len(columns), panel=(3.1, 2.5))
    has_reference, rows = False, iter(grid)
    samples = _samples_by_dataset(artefact)
    several = final["dataset"].nunique() > 1
    for dataset, parts in by_dataset.items():
        row = next(rows)
        label = metric_label(artefact.metric, samples[dataset])
        has_reference |= _row(artefact, row, parts, references, lines)
        _name_vertical_axis(row, label)
        for axes, column, runs in zip(row, columns, parts, strict=True):
            name = [artefact.label(dataset)] if several else []  # the subtitle names a single one
            name.append(column + seeds_if_fewer(runs, shown))
            across = len(columns)
            panel_title(figure, axes, ("\n" if across > _FEW else ", ").join(name), across)
        if dataset in late:
            row = next(rows)
            near = [_of_those(*pair, lines) for pair in zip(parts, late[dataset], strict=True)]
            _row(artefact, row, near, references, lines)
            for axes, found in zip(row, late[dataset], strict=True):
                _enlarge(axes, found, lines.metric)
            _name_vertical_axis(row, label)
    _name_horizontal_axes(grid)
    lower = "lower panels: the last rounds of the methods that end near the best" if late else ""
    lower += ", each panel with its own vertical axis" if late and len(columns) > 1 else ""
    left_out = log_axis_note(shown[artefact.metric], log=options.log)
    spread = band_note(shown, bars=not bands)
    spread += (
        "; band of the dashed line: likewise" if spread and has_reference and not bands else ""
    )
    title(figure, artefact, final, spread, lower, left_out)
    legend(figure, _handles(artefact, shown, lines, has_reference))
    return figure


def _shown_rounds(artefact: Artefact, final: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rounds of the methods to draw, and the runs whose end is the reference line."""
    frame = curves(artefact)
    if artefact.metric not in frame:
        raise FedlogitError(f"{artefact.name}: {artefact.metric!r} is no column of rounds.csv")
    shown, references = competitors(frame), final
    if shown.empty:  # then the reference is a method as any other
        shown, references = frame, competitors(final)
    across = artefact.read_options(ByRound).across
    # Partitions that differ in a dataset's parameters only have one label, and one column.
    columns = shown[across].map(lambda value: artefact.full_label(value, across))
    return shown.assign(column=columns), references


def last_third(runs: pd.DataFrame, metric: str, near: float) -> pd.DataFrame:
    """Return the rows of the last third of the rounds, of the methods that end near the best.

    Args:
        runs: The rounds of a panel.
        metric: One of which more is better.
        near: How far below the best of them a method's mean may end, in units of the metric.
    """
    measured = runs.dropna(subset=[metric])
    last = measured["round"].max()
    late = measured[measured["round"] >= last - max(1, last // 3)]
    ends = late.groupby(["method", "round"])[metric].mean().groupby("method").last()
    return late[late["method"].isin(ends.index[ends >= ends.max() - near])]


def _of_those(runs: pd.DataFrame, late: _Late, lines: _Lines) -> pd.DataFrame:
    """Return the rounds of the methods that an enlarged panel shows, or that are levels in it."""
    return runs[runs["method"].isin({*late.rounds["method"], *lines.once})]


def _row(
    artefact: Artefact,
    row: Sequence[Axes],
    parts: Sequence[pd.DataFrame],
    references: pd.DataFrame,
    lines: _Lines,
) -> bool:
    """Draw the panels of a data set on one vertical axis; return whether any has the reference."""
    found = [_panel(artefact, *pair, references, lines) for pair in zip(row, parts, strict=True)]
    _share_height(_panels_with_runs(row))
    return any(found)


def _panels_with_runs(panels: Iterable[Axes]) -> list[Axes]:
    """Return the panels that have runs: a scale need not have every partition of every data set."""
    return [axes for axes in panels if axes.get_visible()]


def _panel(
    artefact: Artefact, axes: Axes, runs: pd.DataFrame, references: pd.DataFrame, lines: _Lines
) -> bool:
    """Draw a panel; return whether it has the reference."""
    axes.set_visible(not runs.empty)
    if runs.empty:
        return False
    if len(several := runs["partition"].unique()) > 1:
        raise FedlogitError(
            f"{artefact.name}: partitions {' and '.join(map(str, several))} of"
            f" {runs['dataset'].iloc[0]} share the label {runs['column'].iloc[0]!r}"
        )
    options = artefact.read_options(ByRound)
    has_reference = reference_line(
        axes, _reference(references, runs), lines.metric, every_seed=True
    )
    _draw_lines(axes, runs, lines)
    format_axis(axes.yaxis, lines.metric)
    if options.log:
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
    if options.shade_warm_up:
        _shade_warm_up(axes, runs)
    return has_reference


def _reference(references: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the reference's runs on a data set; those of a panel's partition, if it has some."""
    own = references[
        references["dataset"].isin(runs["dataset"]) & (references["method"] == REFERENCE)
    ]
    alike = own[own["partition"].isin(runs["partition"])]
    return own if alike.empty else alike


def _draw_lines(axes: Axes, runs: pd.DataFrame, lines: _Lines) -> None:
    """Draw the methods of a panel; those of one round as a level for the others."""
    measured = runs.dropna(subset=[lines.metric])
    last = measured["round"].max()
    for place, (method, (colour, marker, dash)) in enumerate(lines.strokes.items(), 1):
        own = measured[measured["method"] == method].groupby("round")[lines.metric]
        band = own.agg(["mean", "min", "max"])
        if band.empty:
            continue
        if method in lines.once:
            mean, low, high = band.iloc[0]
            axes.axhline(mean, color=colour, lw=1.4, ls="--", zorder=1)
            if lines.bands:
                axes.axhspan(low, high, color=colour, alpha=0.15, lw=0, zorder=0)
        every = max(1, len(band) // 8)
        axes.plot(
            band.index,
            band["mean"],
            color=colour,
            marker=marker,
            ls=dash,
            markevery=every,
            ms=4.5,
            lw=1.6 if lines.bands else _THIN,
        )
        if lines.bands:
            axes.fill_between(band.index, band["min"], band["max"], color=colour, alpha=0.15, lw=0)
        elif measured["seed"].nunique() > 1:
            mean, low, high = band.iloc[-1]
            x = last * (1.01 + place * _BAR)
            axes.vlines(x, low, high, color=colour, lw=2)
            axes.plot([x], [mean], color=colour, marker=marker, ms=4.5, ls="")
    if len(measured):
        _tick_rounds(axes, 0, int(last))


def _tick_rounds(axes: Axes, first: int, last: int) -> None:
    """Write the last round below the axis, and rounds before it that are not too near."""
    # A single round has one tick; with two, they would be at fractions.
    ticks = MaxNLocator(integer=True, nbins=6, steps=[1, 2, 4, 5, 10], min_n_ticks=1)
    room = _TICK_ROOM * (last - first)
    before = [t for t in ticks.tick_values(first, last) if max(first, 1) <= t < last - room]
    axes.set_xticks([*before, last])


def _shade_warm_up(axes: Axes, runs: pd.DataFrame) -> None:
    """Shade the rounds in which CELM probes: those that say how long probing took."""
    if "seconds_probe" in runs and runs["seconds_probe"].notna().any():
        last = runs.loc[runs["seconds_probe"].notna(), "round"].max()
        axes.axvspan(0.5, last + 0.5, color=PALETTE["grey"], alpha=0.18, lw=0, zorder=0)


def _share_height(panels: Sequence[Axes]) -> None:
    """Give panels side by side one vertical axis, with numbers at the first."""
    ends = [axes.get_ylim() for axes in panels]
    for axes in panels:
        axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
        axes.tick_params(labelleft=axes is panels[0])


def _enlarged_rows(
    by_dataset: Mapping[str, Sequence[pd.DataFrame]], references: pd.DataFrame, lines: _Lines
) -> dict[str, list[_Late]]:
    """Return the panels to enlarge of each data set that has one with two lines at least."""
    found = {name: _late_rounds(parts, references, lines) for name, parts in by_dataset.items()}
    return {name: late for name, late in found.items() if any(one.comparable() for one in late)}


def _late_rounds(
    parts: Sequence[pd.DataFrame], references: pd.DataFrame, lines: _Lines
) -> list[_Late]:
    """Return what to enlarge of each panel of a data set."""
    metric, panels = lines.metric, [runs for runs in parts if len(runs)]
    shown = pd.concat([*panels, *(_reference(references, runs) for runs in panels)])[metric]
    near = _NEAR * (shown.max() - shown.min())
    found = []
    for runs in parts:
        tested = runs.dropna(subset=[metric])["round"].nunique()
        rounds = last_third(runs if tested >= _FEWEST else runs.iloc[:0], metric, near)
        level = _reference(references, runs)[metric].mean()
        beside = abs(level - rounds[metric].max()) <= near  # not where either is missing
        found.append(_Late(rounds, level if beside else None))
    return found


def _enlarge(axes: Axes, late: _Late, metric: str) -> None:
    """Show the last rounds, from the lowest method near the best to the highest."""
    if not late.comparable():
        axes.set_visible(False)
        return
    values_here = late.rounds[metric]
    ends = [values_here.min(), values_here.max()]
    ends += [] if late.level is None else [late.level]
    first, last = late.rounds["round"].min(), late.rounds["round"].max()
    axes.set_title(f"rounds {first}–{last}")
    axes.tick_params(labelleft=True)
    _tick_rounds(axes, int(first), int(last))
    for limits, least, most in (
        (axes.set_xlim, first, last),
        (axes.set_ylim, min(ends), max(ends)),
    ):
        if margin := 0.05 * (most - least):
            limits(least - margin, most + margin)


def _samples_by_dataset(artefact: Artefact) -> dict[str, str]:
    """Return which samples the scores on each data set are of, as `samples_of`."""
    found: dict[str, list[RunSpec]] = {}
    for ref, run in gather(artefact):
        dataset = str(run_place(run.spec, ref.axes)["dataset"])
        found.setdefault(dataset, []).append(run.spec)
    return {dataset: samples_of(specs) for dataset, specs in found.items()}


def _name_vertical_axis(row: Iterable[Axes], label: str) -> None:
    """Name the vertical axis at the first panel of a row."""
    for axes in _panels_with_runs(row)[:1]:
        axes.set_ylabel(sentence(label))


def _name_horizontal_axes(grid: np.ndarray) -> None:
    """Name the rounds at the last panel of a column."""
    for panels in filter(None, map(_panels_with_runs, grid.T)):
        panels[-1].set_xlabel("Round")


def _handles(
    artefact: Artefact, shown: pd.DataFrame, lines: _Lines, has_reference: bool
) -> list[Artist]:
    """Return the entries of the legend."""
    continued = lines.once if set(lines.strokes) - set(lines.once) else ()
    handles: list[Artist] = []
    for name, line in lines.strokes.items():
        stroke = line._replace(dash="--") if name in lines.once else line
        handle = method_handle(artefact, name, stroke)
        if name in continued:
            handle.set_label(f"{handle.get_label()}, its one round continued")
        handles.append(handle)
    handles += [reference_handle(artefact)] if has_reference else []
    if artefact.read_options(ByRound).shade_warm_up and "seconds_probe" in shown:
        handles.append(Patch(color=PALETTE["grey"], alpha=0.18, lw=0, label="warm-up of CELM"))
    return handles
