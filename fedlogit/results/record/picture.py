"""The record as a picture: ours against the paper's on the left, a bar per table on the right.

Every published number is in a bar. On the left are accuracies and other shares, whose margins are
the same everywhere; distances, bytes and perplexities have no place on these axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from fedlogit.papers import Paper
from fedlogit.papers.metric_names import is_share
from fedlogit.results.record.counts import DECISIVE, OUTCOMES, counts, is_trained
from fedlogit.results.style import GREY, PALETTE, header, use_house_style
from fedlogit.results.verdicts.rules import PARTLY, UNJUDGED, VERDICTS, Unjudged, Verdict

__all__ = ["bars", "draw_record", "plotted_shares"]


class _Look(NamedTuple):
    """How an outcome is drawn: colour, marker of a point, whether it is filled, hatch of a bar."""

    colour: str
    marker: str
    filled: bool = True
    hatch: str = ""


# Blue is good and red is bad, which stay apart under the common colour blindnesses; markers and
# hatches differ, for print in grey.
_LOOKS: dict[str, _Look] = {
    Verdict.REPRODUCED: _Look(PALETTE["blue"], "o"),
    Verdict.PARTLY_REPRODUCED: _Look(PALETTE["sky"], "s"),
    Verdict.INCONCLUSIVE: _Look(PALETTE["orange"], "D", hatch="////"),
    Verdict.NOT_REPRODUCED: _Look(PALETTE["vermillion"], "X"),
    Verdict.SINGLE_RUN_WITHIN: _Look(PALETTE["sky"], "o", filled=False),
    Verdict.SINGLE_RUN_OUTSIDE: _Look(PALETTE["vermillion"], "X", filled=False, hatch="xxxx"),
    Unjudged.DIVERGED: _Look(PALETTE["black"], "v"),
    Unjudged.STAND_IN_DATA: _Look(PALETTE["purple"], ".", hatch="...."),
    Unjudged.REDUCED_SCALE: _Look("#b0b0b0", ".", hatch="----"),
    Unjudged.OTHER_SCALE: _Look("#7f7f7f", "."),
    Unjudged.NOT_RUN: _Look("#e6e6e6", "|"),
}
_SUBTITLE = (
    "Left: accuracies and other shares; vertical lines are the 90 % intervals behind the verdicts"
    " (a triangle: it goes on), the grey band is ±3 points, ticks at the bottom are numbers not"
    " run. Right: all numbers, by the paper's table, and how many are decided: neither inconclusive"
    " nor of a single run. The legend counts all, too."
)
_SIZE = 5.0
_LOWEST, _HIGHEST = -0.04, 1.01  # of the left part's vertical axis
_WIDTH = 10.0
_BAR = 0.175  # inches from one bar to the next


def draw_record(rows: pd.DataFrame, papers: Mapping[str, Paper]) -> Figure:
    """Return the picture.

    Args:
        rows: As from `fedlogit.results.record.numbers.record`; at least one.
        papers: The papers, for titles.
    """
    use_house_style()
    places = bars(rows)
    tall = max(4.4, _BAR * (len(places) + 1.7 * len(set(rows["paper"]))))
    figure = Figure(figsize=(_WIDTH, tall + 0.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    _scatter(left, rows)
    _bars(right, places, papers)
    found = counts(rows)
    header(figure, _title(rows), _SUBTITLE)
    labels, swatches = zip(*_swatches(found), strict=True)
    figure.legend(
        swatches, labels, loc="outside lower center", ncols=4, handlelength=3.4,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.3)},
    )  # fmt: skip
    return figure


def _title(rows: pd.DataFrame) -> str:
    """Return what became of the numbers; those that need no training, which come out, apart."""
    decided = rows[rows["verdict"].isin(DECISIVE)]
    of_training = is_trained(decided)
    undecided = rows["verdict"].isin(VERDICTS).sum() - len(decided)
    found, exact = counts(decided[of_training]), counts(decided[~of_training])
    text = (
        f"{len(decided)} of {len(rows)} published numbers are decided:"
        f" {of_training.sum()} from training ({found[Verdict.REPRODUCED]} reproduced,"
        f" {found[Verdict.PARTLY_REPRODUCED]} partly, {found[Verdict.NOT_REPRODUCED]} not)"
    )
    if not of_training.all():
        text += (
            f", {(~of_training).sum()} of bytes and distances, without training"
            f" ({exact[Verdict.REPRODUCED]} reproduced, {exact[Verdict.NOT_REPRODUCED]} not)"
        )
    return f"{text}; {undecided} are inconclusive or of one seed"


def plotted_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the shares, which lie between 0 and 1."""
    return rows[rows["metric"].map(is_share)]


def _scatter(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw ours against the paper's, the best verdict on top."""
    axes.fill_between([0, 1], [-PARTLY, 1 - PARTLY], [PARTLY, 1 + PARTLY], color="#e9e9e9", lw=0)
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    shown = plotted_shares(rows)
    for outcome in reversed(OUTCOMES):
        part, look = shown[shown["verdict"] == outcome], _LOOKS[outcome]
        if part.empty:
            continue
        if outcome == Unjudged.NOT_RUN:
            axes.plot(part["published"], [-0.02] * len(part), "|", color=GREY, ms=6, mew=0.6)
            continue
        _draw_intervals(axes, part, look.colour)
        axes.plot(part["published"], part["ours"], clip_on=False, **_point(look))
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    axes.set(xlim=(-0.01, 1.01), ylim=(_LOWEST, _HIGHEST), xticks=ticks, yticks=ticks)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set(xlabel="Reported mean", ylabel="Our mean over seeds")
    axes.grid(False)


def _draw_intervals(axes: Axes, part: pd.DataFrame, colour: str) -> None:
    """Draw each interval as a line, with a triangle where it leaves the axes."""
    x = part["published"]
    low, high = x + part["low"], x + part["high"]
    axes.vlines(x, low, high, color=colour, lw=0.9, alpha=0.4)
    for beyond, edge, marker in (low < _LOWEST, _LOWEST, "v"), (high > _HIGHEST, _HIGHEST, "^"):
        if beyond.any():  # a line without points, unclipped, makes the layout leave room for it
            axes.plot(x[beyond], [edge] * beyond.sum(), marker, color=colour, ms=4, clip_on=False)


def _point(look: _Look) -> dict[str, Any]:
    face = look.colour if look.filled else "white"
    edge = "white" if look.filled and look.marker != "." else look.colour
    width = 0.4 if look.filled else 1.1
    return {
        "ls": "", "marker": look.marker, "ms": _SIZE + (look.marker == "X"), "mfc": face,
        "mec": edge, "mew": width, "color": look.colour,
    }  # fmt: skip


def _bar(look: _Look) -> dict[str, Any]:
    if not look.filled:
        return {"facecolor": "white", "edgecolor": look.colour, "hatch": look.hatch}
    return {
        "facecolor": look.colour, "hatch": look.hatch,
        "edgecolor": "white" if look.hatch else look.colour,
    }  # fmt: skip


def bars(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how many numbers got which outcome: papers and their tables down, outcomes across."""
    keys = [rows["paper"], rows["table"]]
    found = pd.crosstab(keys, rows["verdict"]).reindex(columns=list(OUTCOMES), fill_value=0)
    return found.reindex(pd.MultiIndex.from_frame(rows[["paper", "table"]].drop_duplicates()))


def _bars(axes: Axes, found: pd.DataFrame, papers: Mapping[str, Paper]) -> None:
    """Draw a stacked bar per table, the best verdict first; a paper's name stands above its own."""
    places: list[float] = []
    labels: list[str] = []
    y = -1.0
    for name, part in found.groupby(level=0, sort=False):
        y += 1.7 if places else 1.0
        axes.text(0, y, papers[str(name)].short_name, weight="bold", va="center", size=9.5)
        for _, table in part.index:
            y += 1
            places.append(y)
            labels.append(papers[str(name)].short_title(str(table)))
    start = pd.Series(0, index=found.index)
    for outcome in OUTCOMES:
        look = _LOOKS[outcome]
        axes.barh(
            places, found[outcome], 0.74, left=start, lw=0.8 if found[outcome].any() else 0,
            **_bar(look),
        )  # fmt: skip
        start = start + found[outcome]
    decided = found[list(DECISIVE)].sum(axis=1)
    for place, done, total in zip(places, decided, start, strict=True):
        written = f"{done} of {total} decided"
        axes.text(total + 0.6, place, written, va="center", size=8.5, color=GREY)
    axes.set_yticks(places, labels, size=9)
    axes.tick_params(left=False)
    axes.set(xticks=[], ylim=(y + 0.6, -0.7), xlim=(0, 1.3 * start.max()))
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.grid(False)


def _swatches(found: Mapping[str, int]) -> Iterator[tuple[str, tuple[Line2D | Patch, ...]]]:
    """Yield a legend entry for each outcome that occurs, with its count: its point and its bar."""
    for name, number in ((name, n) for name, n in found.items() if n):
        more = ", not judged" if name in UNJUDGED and name != Unjudged.NOT_RUN else ""
        look = _LOOKS[name]
        point = {"marker": "|", "ls": "", "color": GREY} if look.marker == "|" else _point(look)
        yield f"{number} {name}{more}", (Line2D([], [], **point), Patch(lw=0.8, **_bar(look)))
