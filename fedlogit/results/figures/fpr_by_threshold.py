"""False positives of free-rider detection against the threshold (CELM Figure 4)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._legend import legend, method_handle, strokes
from fedlogit.results.figures._panels import (
    band_note,
    in_per_cent,
    name_axes,
    panels_of,
    seeds_if_fewer,
    title,
)
from fedlogit.results.metrics.celm import free_riders
from fedlogit.results.metrics.detection import THRESHOLDS, false_positive_rate
from fedlogit.results.style import in_order, wrapped_panels

__all__ = ["CELL", "draw"]

CELL = ("dataset", "partition", "method")
_EVERY = 4  # thresholds from one marker of a line to the next


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per dataset and partition and a line per method: the mean over seeds.

    Methods have their markers at different thresholds, so that lines on each other can be seen.
    """
    panels, frame = panels_of(artefact), collect(artefact)
    figure, grid, drawn = wrapped_panels(len(panels), 3, panel=(3.1, 2.6), share_y=True)
    highest = 0.0
    methods = in_order(
        dict.fromkeys(str(ref.axes["method"]) for runs in panels.values() for ref, _ in runs)
    )
    styles = strokes(methods)
    for axes, (name, runs) in zip(drawn, panels.items(), strict=True):
        by_method: dict[str, list[np.ndarray]] = {}
        for ref, run in runs:
            curve = false_positive_rate(run.contributions(), free_riders(run))
            by_method.setdefault(str(ref.axes["method"]), []).append(curve)
        for method, curves in by_method.items():
            colour, marker, dash = styles[method]
            mean, low, high = (f(curves, axis=0) for f in (np.mean, np.min, np.max))
            marked = (methods.index(method) % _EVERY, _EVERY)
            axes.plot(
                THRESHOLDS, mean, color=colour, marker=marker, ls=dash, markevery=marked, ms=4.5
            )
            axes.fill_between(THRESHOLDS, low, high, color=colour, alpha=0.15, lw=0)
            highest = max(highest, float(high.max()))
        here = frame[frame["digest"].isin([ref.digest for ref, _ in runs])]
        axes.set_title(name + seeds_if_fewer(here, frame))
    drawn[0].set_ylim(-0.02, max(0.1, 1.05 * highest))  # of all panels, which share it
    for row in grid:
        in_per_cent(row[0].yaxis)
    name_axes(grid, drawn, "Threshold on the z-score", "False-positive rate")
    title(figure, artefact, frame, band_note(frame))
    legend(figure, [method_handle(artefact, *item) for item in styles.items()])
    return figure
