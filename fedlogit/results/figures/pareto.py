"""Accuracy against bytes, and what no other method beats on both (TallyTrain, Figure 4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullLocator

from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import Pareto
from fedlogit.papers.schema import JUDGED_SCALE
from fedlogit.results.collect import collect, competitors, summarise
from fedlogit.results.figures._beside import apart
from fedlogit.results.figures._label_placement import NEAR, Obstacle, anchors, place, width_of
from fedlogit.results.figures._legend import family_look, legend, published_handle
from fedlogit.results.figures._panels import (
    axis_label,
    bars_note,
    format_axis,
    own_axes_note,
    title,
    values,
)
from fedlogit.results.metrics import metric_of
from fedlogit.results.style import GREY, INK, wrapped_panels
from fedlogit.results.verdicts.published import unambiguous

__all__ = ["draw", "frontier"]

_FRONT = "Pareto front: no method needs fewer bytes and is as accurate"
_ALONE, _BESIDE_OTHERS = (5.5, 3.2), (4.5, 3.6)  # inches that a panel's axes have, about
_AROUND = (0.7, 0.6)  # inches for the numbers and names of its axes
_MOVED = 0.015  # of the horizontal axis, that a point may stand from its payload
_MARK = 0.05  # inches from the middle of a marker to its edge
_FAR = 0.5  # of the largest payload: from there on, names need room beyond all points
_ROOM = 0.12  # of the horizontal axis, for these names, at most; longer ones stand at the left
_ON_WHITE = withStroke(linewidth=1.5, foreground="white")  # where a grid line crosses a name
_LINE = {"arrowstyle": "-", "color": GREY, "lw": 0.6, "shrinkA": 1.0, "shrinkB": 3.0}
_FEW = 2  # powers of ten on an axis; if there are fewer, more is written on it


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per value of the axis `by`: a point a method, and the frontier.

    At scale ``paper`` the paper's points are there, too, hollow.

    The horizontal axis is logarithmic above the smallest payload; methods that send nothing stand
    at its left end, at 0. Methods of about the same payload whose bars would hide each other stand
    side by side, the most accurate first, no further from their payload than 1.5 % of the axis; the
    subtitle says how far that is in bytes. Bars are standard deviations over seeds.
    """
    options = artefact.read_options(Pareto)
    if artefact.scale != JUDGED_SCALE:
        reference = None  # other models and rounds send other bytes
    frame = competitors(collect(artefact, [options.x]))
    by = options.by
    panels = values(frame.dropna(subset=[by]), by)
    size = _ALONE if len(panels) == 1 else _BESIDE_OTHERS
    panel_size = (size[0] + _AROUND[0], size[1] + _AROUND[1])
    figure, grid, drawn = wrapped_panels(len(panels), 2, panel=panel_size)
    has_paper, moved = False, 0.0
    for axes, panel in zip(drawn, panels, strict=True):
        points = _points(frame[frame[by] == panel], artefact.metric, options.x)
        theirs = _published(reference, options, panel, list(points["method"]), artefact.metric)
        has_paper |= len(theirs) > 0
        moved = max(moved, _panel(axes, artefact, points, theirs, size))
        if by != "dataset" or len(panels) > 1:  # the subtitle names a single data set
            axes.set_title(artefact.label(panel))
        axes.set_xlabel(_horizontal_label(artefact, options.x))
        format_axis(axes.yaxis, artefact.metric)
    for axes in grid[:, 0]:
        axes.set_ylabel(axis_label(artefact, artefact.metric))
    handles = [Line2D([], [], color=INK, lw=1.1, ls="--", label=_FRONT)]
    handles += [published_handle("reported in the paper")] if has_paper else []
    title(figure, artefact, frame, bars_note(frame), _moved_note(moved), own_axes_note(drawn))
    legend(figure, handles)
    return figure


def _moved_note(share: float) -> str:
    """Return that points were moved, and by which share of their bytes at most; if any were."""
    if not share:
        return ""
    return (
        "points of about equal bytes stand side by side, of equal ones the most accurate first,"
        f" at most {math.ceil(100 * share)}% from their bytes"
    )


def _horizontal_label(artefact: Artefact, metric: str) -> str:
    """Return what is written below the horizontal axis."""
    return axis_label(artefact, metric) + (" [MB]" if metric_of(metric).unit == "bytes" else "")


def _megabytes(values: pd.Series, metric: str) -> pd.Series:
    return values / 1e6 if metric_of(metric).unit == "bytes" else values


def frontier(payload: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """Return which points no other one beats: none sends as little and is as accurate, bool (n,).

    Of equal points all are kept.
    """
    worse = (payload[None] <= payload[:, None]) & (accuracy[None] >= accuracy[:, None])
    better = (payload[None] < payload[:, None]) | (accuracy[None] > accuracy[:, None])
    return np.asarray(~np.any(worse & better, axis=1))


def _front(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the frontier, by rising payload."""
    best = points[frontier(points["payload"].to_numpy(), points["mean"].to_numpy())]
    return best.sort_values(["payload", "mean"])


def _points(runs: pd.DataFrame, metric: str, across: str) -> pd.DataFrame:
    cells = summarise(runs, ["method"], metric).dropna(subset=["mean"])
    sent = summarise(runs, ["method"], across).set_index("method")["mean"]
    cells = cells.assign(payload=_megabytes(cells["method"].map(sent), across))
    return cells.sort_values(["payload", "mean"], ascending=[True, False], kind="stable")


def _published(
    reference: pd.DataFrame | None, options: Pareto, panel: str, methods: list[str], metric: str
) -> pd.DataFrame:
    """Return the paper's accuracy and payload of these methods, where it has both."""
    across = options.x
    if reference is None or options.by not in reference:
        return pd.DataFrame(columns=["method", "mean", "payload"])
    there = reference[(reference[options.by] == panel) & reference["method"].isin(methods)]
    there = unambiguous(there[there["metric"].isin([metric, across])], ["method", "metric"])
    wide = there.pivot(index="method", columns="metric", values="mean")
    wide = wide.reindex(columns=[metric, across]).dropna().reset_index()
    wide = wide.rename(columns={metric: "mean", across: "payload"})
    return wide.assign(payload=_megabytes(wide["payload"], across))


def _panel(
    axes: Axes,
    artefact: Artefact,
    points: pd.DataFrame,
    theirs: pd.DataFrame,
    size: tuple[float, float],
) -> float:
    """Draw a panel; return how far points stand from their payloads at most, as a share of them."""
    far = points[points["payload"] >= _FAR * points["payload"].max()]
    names = [NEAR + width_of(artefact.label(method)) for method in far["method"]]
    _limit(axes, points, theirs, min(_ROOM, _MOVED + max(names) / size[0]))
    points = points.assign(x=_beside(axes, points, size))
    for row in theirs.to_dict("records"):
        colour, marker = family_look(row["method"])
        axes.plot(
            row["payload"], row["mean"], marker, mfc="white", mec=colour, ms=7, mew=1.3, zorder=2
        )
    for row in points.to_dict("records"):
        colour, marker = family_look(row["method"])
        spread = None if np.isnan(row["std"]) else row["std"]
        axes.errorbar(
            row["x"], row["mean"], yerr=spread, color=colour, marker=marker, ms=7.5, mec="white",
            mew=0.4, elinewidth=1.2, zorder=4,
        )  # fmt: skip
    best = _front(points)
    axes.step(best["payload"], best["mean"], where="post", color=INK, lw=1.1, ls="--", zorder=1)
    _ticks(axes, _smallest_payload(points))
    _write_names(axes, artefact, points, size)
    sent = points[points["payload"] > 0]
    return float((sent["x"] / sent["payload"] - 1).abs().max()) if len(sent) else 0.0


def _limit(axes: Axes, points: pd.DataFrame, theirs: pd.DataFrame, room: float) -> None:
    """Set scale and limits of a panel, with a share of its width as room beyond all points."""
    least = _smallest_payload(points)
    most = max(least, points["payload"].max(), *theirs["payload"])
    axes.set_xscale("symlog", linthresh=least / 2, linscale=0.3)
    axes.set_xlim(-least / 6, most)
    axes.set_xlim(right=_places(axes, np.array([1 / (1 - room)]))[0])
    spread = points["std"].fillna(0)
    heights = [points["mean"] - spread, points["mean"] + spread, theirs["mean"]]
    axes.margins(y=0.12)
    axes.update_datalim([(least, height) for height in pd.concat(heights)])
    axes.autoscale_view(scalex=False)
    axes.set_ylim(axes.get_ylim())


def _beside(axes: Axes, points: pd.DataFrame, size: tuple[float, float]) -> pd.Series:
    """Return where points stand across: at their payloads, or beside those that they would hide.

    They come by rising payload, the best of one payload first.
    """
    where, low, high = _ends(axes, points["payload"], points, size)
    moved = apart(where[:, 0], where[:, 1], low[:, 1], high[:, 1], _MOVED * size[0])
    x = pd.Series(_places(axes, moved / size[0]), points.index)
    return points["payload"].where(moved == where[:, 0], x)


def _places(axes: Axes, shares: np.ndarray) -> np.ndarray:
    """Return what lies at shares of the width of the axes."""
    to_share = axes.transData + axes.transAxes.inverted()
    there = np.column_stack([shares, np.zeros_like(shares)])
    return np.asarray(to_share.inverted().transform(there)[:, 0])


def _ticks(axes: Axes, smallest: float) -> None:
    """Write 0 on the horizontal axis, and the powers of ten where it is logarithmic.

    Smaller ones would crowd the 0.
    """
    low, high = smallest / 2, axes.get_xlim()[1]
    exponents = np.arange(np.ceil(np.log10(low)), np.log10(high))
    if len(exponents) < _FEW:  # then 1, 2 and 5 times each, as far as the axis goes
        decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.log10(high))
        between = [m * d for d in decades for m in (1, 2, 5) if low <= m * d < high]
        axes.set_xticks([0.0, *between], ["0", *(f"{x:g}" for x in between)])
    else:
        axes.set_xticks([0.0, *(10.0**exponents)])
    axes.xaxis.set_minor_locator(NullLocator())


def _write_names(
    axes: Axes, artefact: Artefact, points: pd.DataFrame, size: tuple[float, float]
) -> None:
    """Write each method near its point, with a line to it where it cannot stand beside it."""
    names = [artefact.label(method) for method in points["method"]]
    where = _inches(axes, points["x"], points["mean"], size)
    boxes = place(where, names, list(_obstacles(axes, points, size)), size)
    for name, point, box, end in zip(names, where, boxes, anchors(where, boxes), strict=True):
        right = box[0] >= point[0]
        apart = np.hypot(*(end - point)) > 1.5 * NEAR
        axes.annotate(
            name,
            tuple(point / size),
            tuple(end / size),
            xycoords="axes fraction",
            textcoords="axes fraction",
            ha="left" if right else "right",
            va="center",
            fontsize=8.5,
            arrowprops=_LINE | {"relpos": (0.0 if right else 1.0, 0.5)} if apart else None,
            path_effects=[_ON_WHITE],
        )


def _inches(axes: Axes, x: pd.Series, y: pd.Series, size: tuple[float, float]) -> np.ndarray:
    """Return where points stand within the axes, in inches, (n, 2)."""
    to_share = axes.transData + axes.transAxes.inverted()
    return np.asarray(to_share.transform(np.column_stack([x, y])) * size)


def _ends(
    axes: Axes, x: pd.Series, points: pd.DataFrame, size: tuple[float, float]
) -> list[np.ndarray]:
    """Return where points at x stand, and the lower and the upper ends of their bars, in inches."""
    spread = points["std"].fillna(0)
    return [
        _inches(axes, x, height, size)
        for height in (points["mean"], points["mean"] - spread, points["mean"] + spread)
    ]


def _obstacles(axes: Axes, points: pd.DataFrame, size: tuple[float, float]) -> Iterator[Obstacle]:
    """Yield what a name should not lie on: markers, bars, and the frontier."""
    where, low, high = _ends(axes, points["x"], points, size)
    for (x, y), (_, bottom), (_, top) in zip(where, low, high, strict=True):
        yield Obstacle((x - _MARK, y - _MARK, x + _MARK, y + _MARK), 8.0)
        yield Obstacle((x - 0.02, bottom, x + 0.02, top), 6.0)
    best = _front(points)
    steps = _inches(axes, best["payload"], best["mean"], size)
    for (x, y), (right, top) in itertools.pairwise(steps):
        yield Obstacle((x, y, right, y), 3.0)
        yield Obstacle((right, y, right, top), 3.0)


def _smallest_payload(points: pd.DataFrame) -> float:
    """Return the smallest payload that is not 0."""
    sent = points.loc[points["payload"] > 0, "payload"]
    return float(sent.min()) if len(sent) else 1.0
