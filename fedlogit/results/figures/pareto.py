"""Accuracy against bytes, and what no other method beats on both (TallyTrain, Figure 4)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from fedlogit.results.artefact import Artefact
from fedlogit.results.collect import collect, summarise
from fedlogit.results.figures._parts import bars, competitors, kin_look, legend, title, values
from fedlogit.results.formatting import sentence
from fedlogit.results.metrics import metric_label
from fedlogit.results.style import GREY, INK, new_figure

__all__ = ["draw", "frontier", "inside", "spaced"]

_BYTES = "payload_megabytes"


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per value of the axis `by`, else per dataset: a point a method, the frontier.

    At scale ``paper`` the paper's points are there, too, hollow.

    The horizontal axis is logarithmic above the smallest payload; methods that send nothing stand
    at its left end, at 0; `x_label` says whose bytes they are. Bars are standard deviations over
    seeds.
    """
    if artefact.scale != "paper":
        reference = None  # other models and rounds send other bytes
    frame = competitors(collect(artefact, [_BYTES]))
    by = artefact.options.get("by", "dataset")
    panels = values(frame.dropna(subset=[by]), by)
    columns = min(len(panels), 2)
    figure, grid = new_figure(-(-len(panels) // columns), columns, panel=(6.2, 3.8))
    has_paper = False
    for axes, panel in zip(grid.flat, panels, strict=False):
        points = _points(frame[frame[by] == panel], artefact.metric)
        theirs = _published(reference, panel, list(points["method"]), artefact.metric)
        has_paper |= len(theirs) > 0
        _panel(axes, artefact, points, theirs)
        axes.set_title(artefact.label(panel))
        axes.set_xlabel(artefact.options.get("x_label", sentence(metric_label(_BYTES))))
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(sentence(metric_label(artefact.metric)))
    handles = [Line2D([], [], color=INK, lw=1.1, ls="--", label="Pareto front")]
    if has_paper:
        hollow = {"marker": "o", "mfc": "white", "mec": GREY, "ls": "none"}
        handles.append(Line2D([], [], label="reported in the paper", **hollow))  # type: ignore[arg-type]
    title(figure, artefact, frame, bars(frame))
    legend(figure, handles)
    return figure


def frontier(payload: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """Return which points no other one beats: none sends as little and is as accurate, bool (n,).

    Of equal points all are kept.
    """
    worse = (payload[None] <= payload[:, None]) & (accuracy[None] >= accuracy[:, None])
    better = (payload[None] < payload[:, None]) | (accuracy[None] > accuracy[:, None])
    return np.asarray(~np.any(worse & better, axis=1))


def _points(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    cells = summarise(runs, ["method"], metric).dropna(subset=["mean"])
    sent = summarise(runs, ["method"], _BYTES).set_index("method")["mean"]
    return cells.assign(payload=cells["method"].map(sent))


def _published(
    reference: pd.DataFrame | None, dataset: str, methods: list[str], metric: str
) -> pd.DataFrame:
    """Return the paper's accuracy and payload of these methods, where it has both."""
    if reference is None:
        return pd.DataFrame(columns=["method", "mean", "payload"])
    there = reference[(reference["dataset"] == dataset) & reference["method"].isin(methods)]
    wide = there[there["metric"].isin([metric, _BYTES])].pivot_table(
        index="method", columns="metric", values="mean", aggfunc="first"
    )
    wide = wide.reindex(columns=[metric, _BYTES]).dropna().reset_index()
    return wide.rename(columns={metric: "mean", _BYTES: "payload"})


def _panel(axes: Axes, artefact: Artefact, points: pd.DataFrame, theirs: pd.DataFrame) -> None:
    smallest = _least(points)
    axes.set_xscale("symlog", linthresh=smallest / 2, linscale=0.3)
    for row in theirs.to_dict("records"):
        colour, marker = kin_look(row["method"])
        axes.plot(
            row["payload"], row["mean"], marker, mfc="white", mec=colour, ms=7, mew=1.3, zorder=2
        )
    for row in points.to_dict("records"):
        colour, marker = kin_look(row["method"])
        spread = None if np.isnan(row["std"]) else row["std"]
        axes.errorbar(
            row["payload"], row["mean"], yerr=spread, color=colour, marker=marker, ms=7,
            capsize=2.5, zorder=4,
        )  # fmt: skip
    best = points[frontier(points["payload"].to_numpy(), points["mean"].to_numpy())]
    best = best.sort_values("payload")
    axes.step(best["payload"], best["mean"], where="post", color=INK, lw=1.1, ls="--", zorder=1)
    axes.set_xlim(left=-smallest / 6)
    # 0, and the powers of ten where the axis is logarithmic: smaller ones would crowd the 0.
    exponents = np.arange(np.ceil(np.log10(smallest / 2)), np.log10(axes.get_xlim()[1]))
    axes.set_xticks([0.0, *(10.0**exponents)])
    axes.margins(y=0.12)
    _name(axes, artefact, points)


def _name(axes: Axes, artefact: Artefact, points: pd.DataFrame) -> None:
    """Write each method beside its point, or in a column at the right, with a line to its point.

    Methods that send models differ little in bytes; there is room for their names only beyond them.
    """
    least, most = _least(points), float(points["payload"].max())
    far = points["payload"] > np.sqrt(max(most, 1e-9) * least)
    line = 0.05 * float(np.diff(axes.get_ylim())[0])
    column = most * (most / least) ** 0.08
    if far.any():
        axes.set_xlim(right=most * (most / least) ** 0.42)
    for there, aside in ((points[far], True), (points[~far], False)):
        rows = there.sort_values("mean").to_dict("records")
        heights = inside(
            spaced(np.array([row["mean"] for row in rows]), line), *axes.get_ylim(), line
        )
        for row, height in zip(rows, heights, strict=True):
            beyond = edge(row["payload"], there["payload"])
            aloof = aside or beyond > row["payload"]
            axes.annotate(
                artefact.label(row["method"]),
                (row["payload"], row["mean"]),
                (column if aside else beyond * 1.25 + least / 8, height),
                ha="left",
                va="center",
                fontsize=8.5,
                arrowprops=_LINE if aloof else None,
                path_effects=[_ON_WHITE],
            )


def edge(payload: float, payloads: pd.Series) -> float:
    """Return the largest payload of a point's neighbours, on which its name would lie."""
    near = payloads[(payloads >= payload) & (payloads <= _NEIGHBOUR * payload)]
    return float(near.max())


_NEIGHBOUR = 1.6  # times as many bytes
_ON_WHITE = withStroke(linewidth=2.5, foreground="white")  # where the front crosses a name
_LINE = {"arrowstyle": "-", "color": GREY, "lw": 0.6, "shrinkA": 1.0, "shrinkB": 3.0}
_LINE |= {"relpos": (0.0, 0.5)}  # from the left edge of a name, so that it crosses no other


def spaced(heights: np.ndarray, least: float) -> np.ndarray:
    """Return sorted heights moved apart to at least a distance, around the same mean, (n,)."""
    steps = np.maximum(np.diff(heights), least)
    apart = np.concatenate([np.zeros(min(1, len(heights))), np.cumsum(steps)])
    return apart + (heights.mean() - apart.mean() if len(heights) else 0.0)


def inside(heights: np.ndarray, low: float, high: float, line: float) -> np.ndarray:
    """Return heights moved together so that lines of text stay between two, the top one first."""
    if not len(heights):
        return heights
    lifted = heights + max(0.0, low + line / 2 - heights[0])
    return np.asarray(lifted - max(0.0, lifted[-1] - (high - line / 2)))


def _least(points: pd.DataFrame) -> float:
    """Return the smallest payload that is not 0."""
    sent = points.loc[points["payload"] > 0, "payload"]
    return float(sent.min()) if len(sent) else 1.0
