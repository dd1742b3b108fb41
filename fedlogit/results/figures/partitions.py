"""Samples of each class at each client: a bubble plot of each partition (CELM Figures 2 and 3)."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from fedlogit.papers.artefact import Artefact
from fedlogit.results.bubbles import bubble_panels
from fedlogit.results.collect import collect
from fedlogit.results.figures._panels import panel_name, runs_of, title

__all__ = ["draw"]


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a panel per run, with totals by class above and by client on the right.

    Bubbles and totals each are on one scale in all panels; mavericks and free riders are named.
    Nothing is trained for this picture that a table does not need; the counts come from the runs'
    records.
    """
    panels = [
        (run.counts(), panel_name(artefact, ref), run.roles()) for ref, run in runs_of(artefact)
    ]
    figure = bubble_panels(panels)
    note = "area of a bubble: number of samples; bars: totals"
    scale = "each on one scale in all panels" if len(panels) > 1 else ""
    title(figure, artefact, collect(artefact), note, scale)
    return figure
