"""The record as one picture: ours against the papers', and how many numbers end how."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from fedlogit.results.metrics import is_share
from fedlogit.results.style import GREY, INK, PALETTE, header, use_house_style
from fedlogit.results.verdict import PARTLY, REPRODUCED

__all__ = ["LOOKS", "record_figure"]

# Outcome -> colour, marker, filled. Between them they stay apart without colours, too.
LOOKS = {
    "reproduced": (PALETTE["blue"], "o", True),
    "partly reproduced": (PALETTE["sky"], "s", True),
    "single run, within": (PALETTE["green"], "D", True),
    "inconclusive": (PALETTE["orange"], "^", True),
    "single run, outside": (PALETTE["purple"], "v", True),
    "not reproduced": (PALETTE["vermillion"], "X", True),
    "diverged": (PALETTE["black"], "*", True),
    "stand-in data": (GREY, "P", False),
    "reduced scale": ("#b5b5b5", "o", False),
    "not run": ("#e2e2e2", "", False),
}
_DARK = ("reproduced", "not reproduced", "single run, within", "diverged")
_NARROW = 0.015  # of a bar: no room for a number
_WIDTH = 9.2  # inches


def record_figure(rows: pd.DataFrame, names: Mapping[str, str], summary: str) -> Figure:
    """Draw how many numbers of each paper end how, and below it each share against the paper's.

    Args:
        rows: As from `fedlogit.results.record.record`.
        names: What each paper is called.
        summary: The counts, in words.
    """
    use_house_style()
    shares = rows[rows["metric"].map(is_share) & rows["ours"].notna()]
    shown = [name for name in names if (shares["paper_name"] == name).any()]
    figure = Figure(figsize=(_WIDTH, 0.42 * len(names) + 4.0), layout="constrained")
    panels = max(1, len(shown))
    grid = figure.add_gridspec(2, panels, height_ratios=[0.3 * len(names) + 0.3, 2.9])
    _bars(figure.add_subplot(grid[0, :]), rows, names)
    for column, name in enumerate(shown):
        axes = figure.add_subplot(grid[1, column])
        _scatter(axes, shares[shares["paper_name"] == name])
        axes.set_title(names[name])
    _legend(figure, rows)
    header(figure, "Published numbers and ours", summary)
    return figure


def _bars(axes: Axes, rows: pd.DataFrame, names: Mapping[str, str]) -> None:
    """Draw a bar a paper: the share of its numbers that end in each way, with their count."""
    labels = []
    for y, (name, title) in enumerate(names.items()):
        found = rows.loc[rows["paper_name"] == name, "verdict"].value_counts()
        left, total = 0.0, int(found.sum())
        labels.append(f"{title}, {total} numbers")
        for outcome, look in LOOKS.items():
            share = found.get(outcome, 0) / total
            axes.barh(y, share, left=left, color=look[0], height=0.76, edgecolor="white", lw=0.8)
            if share > _NARROW:
                ink = "white" if outcome in _DARK else INK
                there = (left + share / 2, y)
                axes.text(
                    *there, str(found[outcome]), color=ink, fontsize=8.5, ha="center", va="center"
                )
            left += share
    axes.set_yticks(range(len(names)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.grid(visible=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _scatter(axes: Axes, shares: pd.DataFrame) -> None:
    """Draw ours against the paper's; on the line they are equal, in the bands almost."""
    for margin, shade in ((PARTLY, "#ededed"), (REPRODUCED, "#d9d9d9")):
        axes.fill_between([0, 1], [-margin, 1 - margin], [margin, 1 + margin], color=shade, lw=0)
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    for outcome, (colour, marker, filled) in reversed(LOOKS.items()):
        those = shares[shares["verdict"] == outcome]
        axes.plot(
            those["paper"], those["ours"], marker=marker, ms=5, mew=0.4 if filled else 0.9,
            ls="none", mec="white" if filled else colour, mfc=colour if filled else "none",
            zorder=3,
        )  # fmt: skip
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.set_aspect("equal")
    axes.grid(axis="x")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("paper")
    axes.set_ylabel("ours")


def _legend(figure: Figure, rows: pd.DataFrame) -> None:
    there = set(rows["verdict"])
    handles = [
        Line2D(
            [], [], ls="none", marker=marker or "s", ms=7, mec=colour, label=outcome,
            mfc=colour if filled or not marker else "none",
        )
        for outcome, (colour, marker, filled) in LOOKS.items()
        if outcome in there
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
