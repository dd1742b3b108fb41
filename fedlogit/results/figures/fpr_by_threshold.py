"""False positives of free-rider detection against the threshold (CELM Figure 4)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._parts import band, legend, method_handle, panels_of, strokes, title
from fedlogit.results.metrics.celm import free_riders
from fedlogit.results.metrics.detection import THRESHOLDS, false_positive_rate
from fedlogit.results.style import in_order, new_figure

__all__ = ["CELL", "draw"]

CELL = ("dataset", "partition", "method")


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset and partition and a line per method: the mean over seeds."""
    panels = panels_of(artefact)
    figure, grid = new_figure(1, len(panels), panel=(3.1, 2.6), share_y=True)
    highest = 0.0
    methods = in_order(
        dict.fromkeys(str(ref.axes["method"]) for runs in panels.values() for ref, _ in runs)
    )
    styles = strokes(methods)
    for axes, (name, runs) in zip(grid[0], panels.items(), strict=True):
        by_method: dict[str, list[np.ndarray]] = {}
        for ref, run in runs:
            curve = false_positive_rate(run.contributions(), free_riders(run))
            by_method.setdefault(str(ref.axes["method"]), []).append(curve)
        for method, curves in by_method.items():
            colour, marker, dash = styles[method]
            mean, low, high = (f(curves, axis=0) for f in (np.mean, np.min, np.max))
            axes.plot(THRESHOLDS, mean, color=colour, marker=marker, ls=dash, markevery=4, ms=4.5)
            axes.fill_between(THRESHOLDS, low, high, color=colour, alpha=0.15, lw=0)
            highest = max(highest, float(high.max()))
        axes.set(title=name, xlabel="Threshold on the z-score")
    grid[0, 0].set_ylim(-0.02, max(0.1, 1.05 * highest))  # of all panels, which share it
    grid[0, 0].set_ylabel("False-positive rate")
    frame = collect(artefact)
    title(figure, artefact, frame, band(frame))
    legend(figure, [method_handle(artefact, *item) for item in styles.items()])
    return figure
