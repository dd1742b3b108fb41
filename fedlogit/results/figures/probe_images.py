"""The final probe images of CELM's server, by client and class (CELM Figure 7)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import collect
from fedlogit.results.figures._panels import panel_name, runs_of, title
from fedlogit.results.style import PALETTE, use_house_style

__all__ = ["draw"]

_CELL = 0.62  # inches


def draw(artefact: Artefact, reference: pd.DataFrame | None) -> Figure:
    """Draw a row per client, below the global model's, and a column per class, for the first run.

    All images share one scale, from the 1st to the 99th percentile of all their pixels, so that
    their contrast compares.
    """
    ref, run = next(runs_of(artefact))
    arrays = run.export("probes", "images", "owned")
    images, owned = arrays["images"], arrays["owned"].astype(bool)
    rows, classes = images.shape[:2]
    low, high = np.percentile(images, (1, 99))
    use_house_style()
    size = (_CELL * classes + 1.0, _CELL * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, classes, squeeze=False)
    for i in range(rows):
        for c in range(classes):
            axes = grid[i, c]
            axes.imshow(_picture(images[i, c], low, high), cmap="gray", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
            if i and owned[i - 1, c]:
                axes.add_patch(
                    Rectangle((0, 0), 1, 1, transform=axes.transAxes, fill=False,
                              ec=PALETTE["vermillion"], lw=3.5)
                )  # fmt: skip
        name = f"client {i - 1}" if i else "global\nmodel"
        grid[i, 0].set_ylabel(name, rotation=0, ha="right", va="center")
    for c in range(classes):
        grid[0, c].set_title(f"class {c}", loc="center", fontsize=9)
    run_name = panel_name(artefact, ref)
    title(figure, artefact, collect(artefact), run_name, "frame: the client holds the class")
    return figure


def _picture(image: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return (height, width) or (height, width, 3) in [0, 1] from (channels, height, width)."""
    scaled = np.clip((image - low) / max(high - low, 1e-12), 0, 1)
    return scaled[0] if len(scaled) == 1 else np.moveaxis(scaled, 0, -1)
