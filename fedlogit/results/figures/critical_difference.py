"""Average ranks of methods over all cells, and which of them do not differ (Demšar 2006)."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect, competitors
from fedlogit.results.figures._legend import family_look
from fedlogit.results.figures._panels import metric_name, title
from fedlogit.results.statistics.means import ALPHA
from fedlogit.results.statistics.ranks import Ranking, blocks, ranking
from fedlogit.results.style import INK, new_figure

__all__ = ["draw"]


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a row per method at its average rank, the best on top; bars join neighbours in rank.

    The rank is taken among all methods for each data set, partition and seed. Of the neighbours
    that a bar joins no two differ by Wilcoxon's signed-rank test at 5 %, corrected for all pairs
    after Holm. Methods that no bar joins may not differ either, where one between them does.
    """
    frame = competitors(collect(artefact))
    table, left_out = blocks(frame, artefact.metric)
    found = ranking(table)
    rows = len(found.ranks)
    figure, grid = new_figure(panel=(6.6, 0.27 * rows + 0.6))
    _panel(grid[0, 0], artefact, found)
    one_dataset = frame["dataset"].nunique() == 1
    title(figure, artefact, frame, *_notes(artefact, found, left_out, one_dataset=one_dataset))
    return figure


def _notes(
    artefact: Artefact, found: Ranking, left_out: list[str], *, one_dataset: bool
) -> list[str]:
    """Return what the subtitle says of the tests, and of methods without a rank."""
    places = "partition" if one_dataset else "data set, partition"
    parts = [
        f"{found.n} cells of {places} and seed",
        "a bar joins neighbours of which no two differ",
        found.friedman(),
    ]
    fewest = len(found.pairs) * 2.0 ** (1 - found.n)  # the least p that a pair can have
    if fewest >= ALPHA:
        parts.append(f"too few cells for any two of {len(found.ranks)} methods to differ")
    if left_out:
        parts.append(f"not in every cell: {', '.join(map(artefact.label, left_out))}")
    return parts


def _panel(axes: Axes, artefact: Artefact, found: Ranking) -> None:
    for row, (method, rank) in enumerate(found.ranks.items()):
        colour, marker = family_look(str(method))
        axes.axhline(row, color="#e6e6e6", lw=0.6, zorder=0)  # leads from the bars to the names
        axes.plot([1, rank], [row, row], color=colour, lw=0.8, alpha=0.5, zorder=1)
        axes.plot(rank, row, marker=marker, color=colour, ms=6, zorder=3)
        axes.annotate(
            f"{rank:.1f}", (rank, row), (6, 0), textcoords="offset points", va="center",
            fontsize=8.5,
        )  # fmt: skip
    rows = len(found.ranks)
    right = rows + 1.6
    for place, (first, last) in enumerate(found.cliques):
        x = right + 0.45 * place
        axes.plot([x, x], [first - 0.25, last + 0.25], color=INK, lw=2.2, solid_capstyle="butt")
    axes.set_xlim(1, right + 0.45 * max(len(found.cliques), 1))
    axes.set_ylim(len(found.ranks) - 0.4, -0.6)
    axes.set_yticks(range(len(found.ranks)), [artefact.label(m) for m in found.ranks.index])
    ticks = range(1, 10) if rows < 10 else (1, 5, 10, 15, 20)
    axes.set_xticks([x for x in ticks if x <= rows])
    axes.set_xlabel(f"Average rank by {metric_name(artefact, artefact.metric)} (1 is best)")
    axes.grid(visible=False, axis="y")
