"""Accuracy over steps and rate of CELM's probes (CELM Figure 6)."""

from __future__ import annotations

import pandas as pd
import seaborn
from matplotlib.figure import Figure

from fedlogit.results.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._parts import panels_of, title
from fedlogit.results.metrics import value
from fedlogit.results.style import new_figure

__all__ = ["draw"]


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset and partition: steps across, rate down, each with its own colours.

    A cell is the mean over seeds, in per cent.
    """
    panels = panels_of(artefact)
    figure, grid = new_figure(1, len(panels), panel=(3.6, 2.7))
    for axes, (name, runs) in zip(grid[0], panels.items(), strict=True):
        rows = [
            {
                "steps": run.spec.method.params["steps"],
                "rate": run.spec.method.params["rate"],
                "accuracy": 100 * value(run, artefact.metric),
            }
            for _, run in runs
        ]
        table = pd.DataFrame(rows).pivot_table(index="rate", columns="steps", values="accuracy")
        seaborn.heatmap(
            table, annot=True, fmt=".2f", cmap="Blues", cbar=False, ax=axes, linewidths=1,
            annot_kws={"fontsize": 8.5},
        )  # fmt: skip
        axes.set(title=name, xlabel="Probe steps L", ylabel="Learning rate η")
        axes.tick_params(length=0, rotation=0)
        axes.grid(visible=False)
    title(figure, artefact, collect(artefact), "test accuracy [%]")
    return figure
