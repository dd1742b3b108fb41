"""How a partition looks: a bubble per client and class, totals in the margins (CELM Figure 2)."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedlogit.errors import FedlogitError
from fedlogit.partition import Roles
from fedlogit.results.style import CATEGORIES, INK, save_figure, use_house_style

__all__ = ["bubble_panels", "bubble_plot", "bubbles"]

_LEFT, _RIGHT, _BOTTOM, _GAP = 0.75, 0.7, 0.55, 0.08  # inches
_MARGIN = 0.8  # height of the class totals and width of the client totals, inches
_LINE = 0.22  # a line of the title, inches
_FILL = 0.92  # diameter of the largest bubble, as a share of a cell
_COLUMNS = 2  # panels in a row: with three, letters are too small on a page
_CELL = 0.29  # width of a cell, inches, at most: two panels of ten classes are as wide as a page
_BUBBLES, _TOTALS = CATEGORIES[0], CATEGORIES[3]
_FULL = 1.05  # of the largest total: where the axes of totals end
_DOT = 2.0  # area of the smallest bubble, square points: one sample must still be seen


def bubble_plot(counts: np.ndarray, path_png: Path, title: str, roles: Roles) -> list[Path]:
    """Draw how many samples of each class each client holds, as ``.png`` and ``.pdf``.

    The area of a bubble is proportional to the count (down to a dot that can still be seen); the
    largest fills its cell. Nothing is drawn where a client has none. Colour carries no meaning.

    Args:
        counts: Samples of each class at each client, (N, K).
        path_png: Where to; the PDF lies beside it.
        title: Above the figure; wrapped to its width.
        roles: Mavericks and free riders are named beside their totals.

    Returns:
        The two paths written.

    Raises:
        FedlogitError: if `counts` is not a matrix with a positive entry.
    """
    return save_figure(bubble_panels([(counts, title, roles)]), path_png)


def bubble_panels(panels: Sequence[tuple[np.ndarray, str, Roles]]) -> Figure:
    """Return a figure of several partitions, two in a row, bubbles and totals each on one scale.

    Args:
        panels: Counts (N, K), a title and roles for each.

    Raises:
        FedlogitError: as `bubble_plot` does.
    """
    use_house_style()
    tables = [_as_counts(counts) for counts, _, _ in panels]
    figure, placed = _layout([t.shape for t in tables], [name for _, name, _ in panels])
    most = max(int(t.max()) for t in tables)
    of_class, of_client = (max(int(t.sum(axis).max()) for t in tables) for axis in (0, 1))
    for counts, (_, _, roles), axes in zip(tables, panels, placed, strict=True):
        main, top, right, corner = axes
        bubbles(main, counts, most)
        _class_totals(top, counts.sum(axis=0), of_class)
        _client_totals(right, counts.sum(axis=1), of_client, roles.by_client(counts))
        corner.set_axis_off()
        if main is placed[0][0]:  # all panels have one scale
            _key(corner, most, (72 * _FILL * min(_cell(*counts.shape))) ** 2)
    return figure


def bubbles(axes: Axes, amounts: np.ndarray, most: float, colour: str = _BUBBLES) -> None:
    """Draw a bubble per client (down) and class (across) where there is something.

    Args:
        axes: Where.
        amounts: Counts or shares, (N, K).
        most: The amount whose bubble fills a cell.
        colour: Of the bubbles.
    """
    clients, classes = amounts.shape
    figure = axes.get_figure(root=True)
    assert figure is not None
    place, (width, height) = axes.get_position(), figure.get_size_inches()
    cell = min(place.width * width / classes, place.height * height / clients)
    largest = (72 * _FILL * cell) ** 2  # marker areas are in square points
    client, label = np.nonzero(amounts)
    area = np.maximum(amounts[client, label] / most * largest, _DOT)
    axes.scatter(label, client, s=area, color=colour, linewidths=0)
    axes.set(xlim=(-0.5, classes - 0.5), ylim=(clients - 0.5, -0.5))
    axes.set(xlabel="Class", ylabel="Client")
    axes.set_xticks(np.arange(0, classes, 1 if classes <= 25 else 5))
    axes.set_yticks(np.arange(0, clients, 1 if clients <= 25 else 5))
    axes.tick_params(length=0)
    axes.grid(visible=True, axis="both")
    axes.spines[["top", "right"]].set_visible(True)


def _as_counts(counts: np.ndarray) -> np.ndarray:
    counts = np.asarray(counts)
    if counts.ndim != 2 or not counts.size or counts.max() <= 0 or counts.min() < 0:
        raise FedlogitError(
            f"counts of shape {counts.shape}: a clients × classes matrix with samples is needed"
        )
    return counts


def _cell(clients: int, classes: int) -> tuple[float, float]:
    """Return the width and height of a cell in inches: many classes make narrow ones."""
    width = float(np.clip(10 / classes, 0.13, _CELL))
    return width, float(np.clip(6 / clients, 0.14, max(width, 0.25)))


def _layout(
    shapes: Sequence[tuple[int, ...]], titles: Sequence[str]
) -> tuple[Figure, list[list[Axes]]]:
    """Place four axes a panel by the inch, so that a cell has the same size in all of them."""
    cells = [_cell(*shape) for shape in shapes]
    wide = [cell[0] * shape[1] for cell, shape in zip(cells, shapes, strict=True)]
    tall = max(cell[1] * shape[0] for cell, shape in zip(cells, shapes, strict=True))
    panel = _LEFT + max(wide) + _GAP + _MARGIN + _RIGHT
    lines = [textwrap.wrap(title, int(panel * 10.5)) for title in titles]
    row = _BOTTOM + tall + _GAP + _MARGIN + 0.25 + _LINE * max(map(len, lines))
    width = panel * min(len(shapes), _COLUMNS)
    height = row * math.ceil(len(shapes) / _COLUMNS)
    figure = Figure(figsize=(width, height))

    def axes(x: float, y: float, w: float, h: float) -> Axes:
        return figure.add_axes((x / width, y / height, w / width, h / height))

    placed = []
    for i, (title, w) in enumerate(zip(lines, wide, strict=True)):
        left, top = panel * (i % _COLUMNS), height - row * (i // _COLUMNS)
        text = ((left + 0.12) / width, (top - 0.1) / height, "\n".join(title))
        figure.text(*text, fontsize=11.5, weight="bold", va="top")
        right, bottom = left + _LEFT + w + _GAP, top - row + _BOTTOM
        above = bottom + tall + _GAP
        placed.append(
            [
                axes(left + _LEFT, bottom, w, tall),
                axes(left + _LEFT, above, w, _MARGIN),
                axes(right, bottom, _MARGIN, tall),
                axes(right, above, _MARGIN + _RIGHT, _MARGIN),
            ]
        )
    return figure, placed


def _class_totals(axes: Axes, totals: np.ndarray, most: int) -> None:
    """Draw the totals as bars; the largest of all panels would fill the axes."""
    axes.bar(np.arange(len(totals)), totals, width=0.7, color=_TOTALS)
    axes.set(xlim=(-0.5, len(totals) - 0.5), ylim=(0, _FULL * most), xticks=[])
    axes.set_yticks([0, totals.max()])
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(labelsize=8)


def _client_totals(axes: Axes, totals: np.ndarray, most: int, names: Sequence[str]) -> None:
    rows = np.arange(len(totals))
    bars = axes.barh(rows, totals, height=0.7, color=_TOTALS)
    axes.set(xlim=(0, _FULL * most), ylim=(len(totals) - 0.5, -0.5), xticks=[], yticks=[])
    axes.spines["bottom"].set_visible(False)
    axes.grid(visible=False)
    if len(totals) <= 30:
        labels = [f"{n:,}\n{name}".strip() for n, name in zip(totals, names, strict=True)]
        axes.bar_label(bars, labels=labels, padding=3, fontsize=8, color=INK)


def _key(axes: Axes, most: int, largest: float) -> None:
    """Say what the largest bubble means, and one of a quarter of its area if there can be one."""
    axes.set(xlim=(0, 1), ylim=(0, 1))
    for y, share in ((0.72, 1.0), (0.25, 0.25)) if most >= 4 else ((0.72, 1.0),):
        axes.scatter(0.16, y, s=largest * share, color=_BUBBLES, linewidths=0)
        axes.text(0.36, y, f"{round(most * share):,} samples", va="center", fontsize=8, color=INK)
