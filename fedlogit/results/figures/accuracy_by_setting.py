"""A metric against any setting of the runs: probes per round, decay, pool size, adversaries."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact, RunRef
from fedlogit.papers.options import BySetting
from fedlogit.papers.published import place_of
from fedlogit.results.collect import collect, summarise
from fedlogit.results.figures._beside import MOVED, line_shifts, moved
from fedlogit.results.figures._legend import (
    DASHES,
    Dash,
    Stroke,
    legend,
    line_handle,
    published_handle,
    reported,
)
from fedlogit.results.figures._levels import DrawnLevel, draw_levels, level_handle
from fedlogit.results.figures._panels import (
    bars_note,
    format_axis,
    line_with_bars,
    log_axis_note,
    metric_name,
    title,
    values,
)
from fedlogit.results.formatting import sentence
from fedlogit.results.runs.run import read_run
from fedlogit.results.style import MARKERS, Look, category_look, family, look, new_figure
from fedlogit.results.verdicts.counterparts import matching_runs, values_here
from fedlogit.results.verdicts.number_rows import published_numbers
from fedlogit.spec import RunSpec

__all__ = ["draw"]

_PANEL = (3.9, 3.0)
_ALONE = (6.2, 3.4)  # of a panel without others
_WIDEST = 40  # letters beside a panel, which is three inches high
_ROOM = 0.09  # of the axis, for the number at a tick
_LINES = 2  # of numbers below an axis


class _Style(NamedTuple):
    """How a line is drawn.

    Attributes:
        stroke: Its look; whole for the first line of a colour, that is of a method or metric.
        shifts: How far it is moved to the right at each of its places; on a logarithmic axis in
            logarithms.
        log: Whether the axis is logarithmic.
    """

    stroke: Stroke
    shifts: Mapping[float, float]
    log: bool

    def moved(self, x: pd.Series) -> pd.Series:
        """Return places moved by the line's shifts."""
        return moved(x, self.shifts, log=self.log)


class _Report(NamedTuple):
    """Where a number of the paper is drawn, and where the paper has it."""

    here: float
    in_paper: float


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw the mean over seeds, bars of one standard deviation, the paper's numbers hollow.

    Methods without a place on the axis may be levels, which are lines across. Where lines differ in
    the method, each looks like its method, and levels have the colour of their method's line; where
    they differ in another setting, their colours are those of no method.

    Where there are bars, lines stand beside each other, so that none hides another's; the ticks are
    at the true values.
    """
    options = artefact.read_options(BySetting)
    metrics = options.metrics or (artefact.metric,)
    needed = [*metrics, *(level.metric for level in options.levels if level.metric)]
    frame = _placed_runs(artefact, options, collect(artefact, needed))
    level = frame["method"].isin([level.method for level in options.levels])
    placed = frame[~level & frame["x"].notna()]
    shown = placed[placed["x"] > 0] if options.log else placed
    if shown.empty:
        above = " above 0, as log = true needs," if options.log else ""
        raise FedlogitError(f"{artefact.name}: no run has a number{above} for x = {options.x!r}")
    lines = [(line, metric) for line in values(shown, "line") for metric in metrics]
    looks = dict(zip(lines, _styles(shown, [line for line, _ in lines], options), strict=True))
    colours = {line: style.stroke.colour for (line, _), style in looks.items()}
    panels = values(shown, "panel")
    size = _PANEL if len(panels) > 1 else _ALONE
    figure, grid = new_figure(1, len(panels), panel=size, share_y=True)
    reports, levels = list[_Report](), dict[str, DrawnLevel]()
    for axes, panel in zip(grid.flat, panels, strict=True):
        here = shown[shown["panel"] == panel]
        for (line, metric), style in looks.items():
            _line(axes, here[here["line"] == line], metric, style)
        reports += _paper(axes, artefact, here, options, metrics, looks, reference)
        levels |= draw_levels(
            axes, artefact, frame[level], panel, metrics, options.levels,
            colours if _of_methods(options) else {},
        )  # fmt: skip
        _label_horizontal_axis(axes, here, artefact, options)
        axes.set_title(panel)
        format_axis(axes.yaxis, metrics[0])
    names = [metric_name(artefact, metric) for metric in dict.fromkeys(needed)]
    common = _common_start(names)
    label = (common or ", ".join(names)) if len(metrics) > 1 else names[0]
    grid[0, 0].set_ylabel(textwrap.fill(sentence(label), _WIDEST))
    sideways = MOVED if any(any(style.shifts.values()) for style in looks.values()) else ""
    left_out = log_axis_note(placed["x"], log=options.log)
    title(figure, artefact, frame, bars_note(frame) + sideways, left_out)
    handles = _shortened(_handles(artefact, looks, len(metrics) > 1, levels), common)
    theirs = _reported(artefact, options.x, reports)
    legend(figure, [*handles, *([published_handle(theirs)] if reports else [])])
    return figure


def _common_start(labels: Sequence[str]) -> str:
    """Return the words that labels of metrics begin with: ``test accuracy``; a label if alone."""
    words = [re.findall(r"[\w-]+", label) for label in labels]
    alike = itertools.takewhile(lambda of: len(set(of)) == 1, zip(*words, strict=False))
    return " ".join(of[0] for of in alike)


def _shortened(handles: Sequence[Line2D], common: str) -> list[Line2D]:
    """Return legend entries without the start that all metrics share, which is beside the axis."""
    start = re.compile(rf"(^|, ){re.escape(common)},? (?=\S)")
    for handle in handles if common else ():
        handle.set_label(start.sub(r"\1", str(handle.get_label())))
    return list(handles)


def _styles(runs: pd.DataFrame, lines: Sequence[str], options: BySetting) -> Iterator[_Style]:
    """Yield the style of each line; where there are bars, lines are moved apart a little."""
    apart = _has_neighbours(runs)
    at = runs.groupby("line")["x"].unique()
    shifts = line_shifts([at[line] if apart else [] for line in lines], log=options.log)
    looks = _looks(runs, list(dict.fromkeys(lines)), options)
    dashes: dict[str, Iterator[Dash]] = {}
    for line, shift in zip(lines, shifts, strict=True):
        colour, marker = looks[line]
        dash = next(dashes.setdefault(colour, itertools.cycle(DASHES)))
        yield _Style(Stroke(colour, marker, dash), shift, options.log)


def _has_neighbours(runs: pd.DataFrame) -> bool:
    """Return whether bars of several lines would stand at one place."""
    return bool(bars_note(runs)) and runs.groupby("x")["line"].nunique().max() > 1


def _looks(runs: pd.DataFrame, lines: Sequence[str], options: BySetting) -> dict[str, Look]:
    """Return the colour and marker of each line, the same for all of its metrics.

    Lines of one method keep its colour; the first has its marker, too, and the others those that
    are free. Lines that a setting other than the method tells apart have colours of no method.
    """
    of_methods = not options.lines or _of_methods(options)
    chosen: dict[str, Look] = {}
    for place, line in enumerate(lines):
        names = runs.loc[runs["line"] == line, "method"].map(family).unique()
        own = look(names[0]) if of_methods and len(names) == 1 else category_look(place)
        taken = [known.marker for known in chosen.values() if known.colour == own.colour]
        free = [m for m in (own.marker, *MARKERS) if m not in taken]
        chosen[line] = own._replace(marker=free[0] if free else own.marker)
    return chosen


def _of_methods(options: BySetting) -> bool:
    """Return whether lines differ in the method."""
    return any(key.partition(".")[0] == "method" for key in options.lines)


def _placed_runs(artefact: Artefact, options: BySetting, frame: pd.DataFrame) -> pd.DataFrame:
    """Add to each run its `x`, the name of its `line`, and that of its `panel`."""
    specs = [read_run(ref.dir, ref.digest).spec for ref in artefact.runs]
    runs = list(zip(artefact.runs, specs, strict=True))
    across = [_number(spec.setting(options.x)) for spec in specs]
    if options.per_class:
        across = [x / n if n else np.nan for x, n in zip(across, frame["classes"], strict=True)]
    several = len({spec.dataset for spec in specs}) > 1  # the subtitle names a single one
    panels = tuple(key for key in options.panels if several or key != "dataset")
    return frame.assign(
        x=across,
        line=[_line_name(artefact, *run, options.lines) for run in runs],
        panel=[_line_name(artefact, *run, panels) for run in runs],
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


def _line_name(artefact: Artefact, ref: RunRef, spec: RunSpec, keys: tuple[str, ...]) -> str:
    """Return a name made of the settings: the label of ``key=value``, or that of the value.

    A method or a partition is called as on its axis, not by the call in the run's spec.
    """
    named = ("method", "partition")
    short: dict[str, Any] = {key: ref.axes[key] for key in named if key in ref.axes}
    names = [artefact.label(short.get(key, spec.setting(key)), key) for key in keys]
    return ", ".join(filter(None, names))


def _line(axes: Axes, runs: pd.DataFrame, metric: str, style: _Style) -> None:
    cells = summarise(runs, ["x"], metric).sort_values("x")
    line_with_bars(axes, style.moved(cells["x"]), cells["mean"], cells["std"], style.stroke)


def _paper(
    axes: Axes,
    artefact: Artefact,
    runs: pd.DataFrame,
    options: BySetting,
    metrics: tuple[str, ...],
    looks: Mapping[tuple[str, str], _Style],
    reference: pd.DataFrame | None,
) -> list[_Report]:
    """Add the paper's numbers where their runs stand; return where these and the paper's are."""
    if reference is None or not options.table:
        return []
    there = reference[reference["table"].isin(options.table) & reference["metric"].isin(metrics)]
    stands_in = values_here(artefact)
    found = []
    for published in published_numbers(there):
        same = matching_runs(runs, published, stands_in)
        if same[["x", "line"]].drop_duplicates().shape[0] != 1:
            continue
        style = looks[same["line"].iloc[0], published["metric"]]
        axes.plot(
            style.moved(same["x"].iloc[:1]), [published["mean"]], style.stroke.marker, mfc="white",
            mec=style.stroke.colour, ms=8, mew=1.3, zorder=2,
        )  # fmt: skip
        x = same["x"].iloc[0]
        in_paper = place_of(published).get(options.x) if options.x in stands_in else None
        classes = same["classes"].iloc[0] if options.per_class else 1
        found.append(_Report(x, x if in_paper is None else float(in_paper) / classes))
    return found


def _reported(artefact: Artefact, setting: str, reports: Sequence[_Report]) -> str:
    """Return what the paper's numbers are called, and if they are of another setting, of which."""
    name, what = reported(artefact), artefact.label(setting)
    what = what[0].lower() + what[1:]
    ratios = {round(one.in_paper / one.here, 6) for one in reports if one.here}
    if all(one.in_paper == one.here for one in reports):
        return name
    if len(ratios) == 1:
        return f"{name}, with {ratios.pop():g} × the {what}"
    pairs = sorted({(one.here, one.in_paper) for one in reports})
    listed = ", ".join(f"{theirs:,g} at {here:,g}" for here, theirs in pairs)
    return f"{name}, with other {what}: {listed}"


def _label_horizontal_axis(
    axes: Axes, runs: pd.DataFrame, artefact: Artefact, options: BySetting
) -> None:
    if options.log:
        axes.set_xscale("log")
    places = sorted(runs["x"].unique())
    whole = (runs["x"] % 1 == 0).all()
    written = [f"{x:,.0f}" if whole else f"{x:.3g}" for x in places]
    lines = _lines_of_numbers(list(np.log(places)) if options.log else places)
    axes.set_xticks(places, [_in_line(*pair) for pair in zip(written, lines, strict=True)])
    axes.minorticks_off()
    axes.set_xlabel(artefact.label(options.x) + (" per class" if options.per_class else ""))


def _lines_of_numbers(places: Sequence[float]) -> list[int | None]:
    """Return the first line below the axis that has room for each tick's number, or None."""
    room = _ROOM * (places[-1] - places[0])
    last = [-np.inf] * _LINES  # the place of the last number of each line
    chosen: list[int | None] = []
    for place in places:
        line = next((i for i, before in enumerate(last) if place - before > room), None)
        if line is not None:
            last[line] = place
        chosen.append(line)
    return chosen


def _in_line(text: str, line: int | None) -> str:
    """Return a tick's number as it is written in a line below the axis; nothing without one."""
    return "" if line is None else "\n" * line + text


def _handles(
    artefact: Artefact,
    looks: Mapping[tuple[str, str], _Style],
    several: bool,
    levels: Mapping[str, DrawnLevel],
) -> list[Line2D]:
    """Return the legend entries of the lines, with their metrics if `several`, and of levels."""
    handles = []
    for (line, metric), style in looks.items():
        parts = [line, metric_name(artefact, metric)] if several or not line else [line]
        handles.append(line_handle(", ".join(filter(None, parts)), style.stroke))
    return handles + [level_handle(name, level) for name, level in levels.items()]
