"""Accuracy over steps and rate of CELM's probes (CELM Figure 6)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedlogit.errors import FedlogitError
from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._panels import heat_map, metric_name, panels_of, title
from fedlogit.results.metrics import value
from fedlogit.results.runs.run import Run
from fedlogit.results.style import new_figure

__all__ = ["draw"]

_LEAST = 1.0  # points that a panel's colours span
_LOWEST = 0.1  # share of a panel's cells below which all have the lightest colour


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset and partition: steps across, rate down, each with its own colours.

    A cell is the mean over seeds, in per cent. Colours span a point at least, so that what hardly
    differs looks alike, and the lowest tenth of the cells share one, so that a single low cell
    leaves the others distinct. A panel of a single cell is left out beside others, and named above
    them.
    """
    tables = {
        name: _table([run for _, run in runs], artefact.metric)
        for name, runs in panels_of(artefact).items()
    }
    panels = {name: table for name, table in tables.items() if table.count().sum() > 1} or tables
    alone = [name for name in tables if name not in panels]
    figure, grid = new_figure(1, len(panels), panel=(3.6, 2.7))
    for axes, (name, table) in zip(grid[0], panels.items(), strict=True):
        low, high = _colours(table)
        heat_map(axes, table, ".2f", vmin=low, vmax=high)
        axes.set(title=name, xlabel="Probe steps L", ylabel="Learning rate η")
    note = f"{metric_name(artefact, artefact.metric)} of CELM [%]; each panel has its own colours"
    left_out = f"left out, as one cell was run: {' and '.join(alone)}" if alone else ""
    title(figure, artefact, collect(artefact), note, left_out)
    return figure


def _table(runs: list[Run], metric: str) -> pd.DataFrame:
    """Return the mean of each rate (down) and number of steps (across), in per cent.

    Raises:
        FedlogitError: if a run's method has neither, as only CELM has.
    """
    for run in runs:
        if lacking := {"steps", "rate"} - run.spec.method.params.keys():
            raise FedlogitError(
                f"{run.folder}: method {run.spec.method.name} has no {min(lacking)}; probe_heat_map"
                " is of CELM's probes"
            )
    rows = [
        {
            "steps": run.spec.method.params["steps"],
            "rate": run.spec.method.params["rate"],
            "accuracy": 100 * value(run, metric),
        }
        for run in runs
    ]
    return pd.DataFrame(rows).pivot_table(index="rate", columns="steps", values="accuracy")


def _colours(table: pd.DataFrame) -> tuple[float, float]:
    """Return where the colours of a panel begin and end: near its values, or further apart."""
    cells = table.to_numpy()
    low, high = float(np.nanquantile(cells, _LOWEST)), float(np.nanmax(cells))
    more = max(0.0, _LEAST - (high - low)) / 2
    return low - more, high + more
