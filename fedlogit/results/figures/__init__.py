"""Figures by name: ``accuracy_by_round`` is `draw` in the module of that name in this package.

Each `draw` takes an artefact and the published numbers, if there are any, and returns a figure. A
new kind of figure is one file. Where it averages runs, its constant `CELL` has the axes that it
tells apart; runs that differ in another one are refused, since the average would hide it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.options import FIGURES
from fedlogit.papers.schema import figure_names
from fedlogit.results.collect import collect, refuse_mixed
from fedlogit.results.formatting import write_text
from fedlogit.results.provenance import caption
from fedlogit.results.style import save_figure

__all__ = ["draw", "figure_names", "write_figure"]


def draw(artefact: Artefact, reference: pd.DataFrame | None = None) -> Figure:
    """Return the figure that an artefact describes.

    Args:
        artefact: A figure; its `plot` names the kind.
        reference: The paper's numbers, as from
            `fedlogit.results.verdicts.published.read_reference`.

    Raises:
        FedlogitError: if there is no such kind, with the nearest one suggested, or if runs differ
            in an axis that this kind cannot show.
        DataError: if a run is missing or damaged.
    """
    if artefact.plot is None:
        raise FedlogitError(f"{artefact.name}: key 'plot' is missing (one of {figure_names()})")
    if artefact.plot not in figure_names():
        raise unknown(f"plot of {artefact.name}", artefact.plot, figure_names())
    module = importlib.import_module(f"{__name__}.{artefact.plot}")
    if cell := getattr(module, "CELL", ()):
        options = artefact.read_options(FIGURES[artefact.plot])
        named = [getattr(options, name) for name in options.settings_in]  # it shows these, too
        _refuse_mixed(artefact, list(dict.fromkeys([*cell, *named])))
    return module.draw(artefact, reference)


def _refuse_mixed(artefact: Artefact, cell: Sequence[str]) -> None:
    """Refuse an artefact whose runs differ in more than the figure tells apart, and the seed."""
    try:
        refuse_mixed(collect(artefact), cell)
    except FedlogitError as error:
        raise FedlogitError(f"{artefact.name}: {error}; {artefact.plot} cannot show it") from None


def write_figure(
    artefact: Artefact, out: Path, reference: pd.DataFrame | None = None
) -> list[Path]:
    """Draw an artefact; write ``out.png``, ``out.pdf`` and, with its caption, ``out.md``.

    Returns:
        The three paths written.

    Raises:
        FedlogitError: as `draw` does, or if they cannot be written.
    """
    paths = save_figure(draw(artefact, reference), out)
    text = f"**{artefact.title}**\n\n![{artefact.title}]({paths[0].name})\n\n{caption(artefact)}"
    return [*paths, write_text(paths[0].with_suffix(".md"), text)]
