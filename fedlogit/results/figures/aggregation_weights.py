"""Weights that an aggregator gives to clients on public samples (Who to Trust §3.1.3, §4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._panels import in_per_cent, runs_of, title
from fedlogit.results.runs.run import Run
from fedlogit.results.style import CATEGORIES, GREY, INK, PALETTE, new_figure, panel_title

__all__ = ["CELL", "Panel", "draw", "mean_weights"]

CELL = ("dataset", "partition", "method")
_NEEDED = ("weights", "labels", "owned")
_COLOUR_BAR = 1.0  # inches beside the panels
_ROOM = 0.15  # of a panel's height, that a word below a line needs


@dataclass(frozen=True)
class Panel:
    """The weights of all seeds of one dataset, partition and method.

    Attributes:
        name: What the panel is called.
        weights: (clients, points) for each seed; columns sum to 1.
        labels: True classes of the points, (points,) for each seed.
        owned: Whether a client holds a class, (clients, classes) for each seed.
    """

    name: str
    weights: list[np.ndarray]
    labels: list[np.ndarray]
    owned: list[np.ndarray]

    def on_owners(self) -> float:
        """Return the mean share of weight on clients that hold a sample's class."""
        shares = [
            float((weights * owned[:, labels]).sum(axis=0).mean())
            for weights, labels, owned in zip(self.weights, self.labels, self.owned, strict=True)
        ]
        return float(np.mean(shares))

    def owners(self) -> float:
        """Return the mean share of clients that hold a sample's class: uniform weights' share."""
        shares = [
            owned[:, labels].mean() for labels, owned in zip(self.labels, self.owned, strict=True)
        ]
        return float(np.mean(shares))


def mean_weights(weights: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Return the mean weight of each client on the samples of each true class.

    The sums are in float64 and in the order of the samples: those of a matrix product would depend
    on the processor, and with them the figure's bytes.

    Args:
        weights: (clients, points).
        labels: (points,).
        classes: Number of classes.

    Returns:
        float64 (clients, classes); NaN for a class without samples.
    """
    counts = np.bincount(labels, minlength=classes)
    total = np.stack([np.bincount(labels, own, minlength=classes) for own in weights])
    return np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a column per dataset, partition and method.

    Above, the mean weight of each client on the public images of each true class, for the first
    seed, with an outline where the client holds the class. Below, the largest weight on each
    image, sorted, one line per seed, against the uniform weight 1/M.
    """
    panels = list(_panels(artefact))
    tallest = max(len(panel.owned[0]) for panel in panels)
    figure, grid = new_figure(2, len(panels), panel=(3.7, 1.35 + 0.085 * tallest))
    highest = max(_largest_weight(panel) for panel in panels)
    largest = max(float(weights.max()) for panel in panels for weights in panel.weights)
    for heat, curve, panel in zip(grid[0], grid[1], panels, strict=True):
        _heat(heat, panel, highest)
        said = (
            f"{panel.on_owners():.0%} of weight on clients that hold the class"
            f" (uniform: {panel.owners():.0%})"
        )
        said = ": ".join(filter(None, (panel.name, said)))
        panel_title(figure, heat, said, len(panels), beside=_COLOUR_BAR)
        _curve(curve, panel, 1.03 * largest)
    grid[0, 0].set_ylabel("Client")
    grid[1, 0].set_ylabel("Largest weight of a client")
    colours = ScalarMappable(Normalize(0, highest), "Blues")
    bar = figure.colorbar(colours, ax=list(grid[0]), pad=0.02, aspect=25)
    bar.set_label("Mean weight")
    bar.outline.set_visible(False)
    several = max(len(panel.weights) for panel in panels) > 1
    seeds = "upper panels: the first seed, lower panels: every seed" if several else ""
    title(figure, artefact, collect(artefact), "frame: the client holds the class", seeds)
    return figure


def _panels(artefact: Artefact) -> Iterator[Panel]:
    """Yield the weights of each cell, which is called by its partition and what else differs."""
    several = {
        axis: len({str(run.axes.get(axis)) for run in artefact.runs}) > 1
        for axis in ("dataset", "method")
    }
    axes = [axis for axis in CELL if several.get(axis, True)]
    cells: dict[tuple[str, ...], list[dict[str, np.ndarray]]] = {}
    for ref, run in runs_of(artefact):
        cell = tuple(str(ref.axes[a]) for a in axes if a in ref.axes)
        cells.setdefault(cell, []).append(_arrays(run))
    for cell, seeds in cells.items():
        name = ", ".join(artefact.label(value) for value in cell)
        yield Panel(name, *([seed[key] for seed in seeds] for key in _NEEDED))


def _arrays(run: Run) -> dict[str, np.ndarray]:
    """Return what the figure needs of a run."""
    found = run.export("aggregation", *_NEEDED)
    return found | {"owned": found["owned"].astype(bool)}


def _largest_weight(panel: Panel) -> float:
    means = mean_weights(panel.weights[0], panel.labels[0], panel.owned[0].shape[1])
    return float(np.nanmax(means))


def _heat(axes: Axes, panel: Panel, highest: float) -> None:
    owned = panel.owned[0]
    clients, classes = owned.shape
    means = mean_weights(panel.weights[0], panel.labels[0], classes)
    seaborn.heatmap(
        means, vmin=0, vmax=highest, cmap="Blues", cbar=False, ax=axes,
        xticklabels=max(1, classes // 10), yticklabels=max(1, clients // 10),
    )  # fmt: skip
    for client, label in np.argwhere(owned):
        corner = (label + 0.06, client + 0.08)
        axes.add_patch(Rectangle(corner, 0.88, 0.84, fill=False, ec=PALETTE["orange"], lw=1.1))
    axes.set_xlabel("True class")
    axes.tick_params(length=0, rotation=0)
    axes.grid(visible=False)


def _curve(axes: Axes, panel: Panel, top: float) -> None:
    for weights in panel.weights:
        largest = np.sort(weights.max(axis=0))[::-1]
        axes.plot(np.linspace(0, 1, len(largest)), largest, color=CATEGORIES[0], lw=1.5)
    uniform = 1 / len(panel.owned[0])
    axes.axhline(uniform, color=INK, linestyle="--", linewidth=1.1)
    below = uniform > _ROOM * top  # the line of the largest weights never is
    axes.annotate(
        "uniform", (1, uniform), (-4, -3 if below else 3), textcoords="offset points", ha="right",
        va="top" if below else "bottom", color=GREY,
    )  # fmt: skip
    axes.set(xlim=(0, 1), ylim=(0, top), xlabel="Public images, largest weight first")
    in_per_cent(axes.xaxis)
