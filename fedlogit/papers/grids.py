"""The grids of a table or figure at a scale, and the values on its axes at all scales."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedlogit import dotted_keys
from fedlogit.papers.axis_values import scalar
from fedlogit.papers.schema import Figure, Grid, Paper, Scale, Table

__all__ = ["axes_of", "grids_at", "values_elsewhere", "values_of"]


def grids_at(scale: Scale, id_: str, entry: Table | Figure) -> list[Grid]:
    """Return an artefact's grids: those that the scale has for it, or its own with other axes."""
    own = scale.artefacts.get(id_)
    written = (own and own.grid) or []  # for this scale, so its axes have nothing to replace
    axes = {**({} if written else scale.axes), **(own.axes if own else {})}
    return [
        {**grid, **{k: axes[k] for k in grid if k in axes}} for grid in written or entry.grid or []
    ]


def axes_of(paper: Paper, id_: str) -> set[str]:
    """Return the axes of an artefact's runs at any scale, and parameters down or across it."""
    printed = paper.artefacts[id_].printed
    parameters = {axis for axis in printed if axis.startswith("method.")}
    return {"dataset", "partition", *parameters, *values_of(paper, id_)}


def values_of(paper: Paper, id_: str) -> dict[str, list[Any]]:
    """Return the values, as tables have them, of each axis that a grid of an artefact has.

    They are those of all scales, and those that scales replace. Of an axis that only some of the
    grids have, they are also all that the paper's file says of it elsewhere, since the others'
    runs take theirs from there.
    """
    source = paper.artefacts[id_].source or id_
    entry = paper.artefacts[source]
    scaled = [grid for scale in paper.scales.values() for grid in grids_at(scale, source, entry)]
    grids = [*(entry.grid or []), *scaled]
    found: dict[str, list[Any]] = {axis: [] for grid in grids for axis in grid}
    for axis, values in found.items():
        values += [value for grid in grids for value in grid.get(axis, [])]
        if any(axis not in grid for grid in grids):
            values += values_elsewhere(paper, axis)
        values[:] = list(dict.fromkeys(map(scalar, values)))
    return found


def values_elsewhere(paper: Paper, key: str) -> Iterator[Any]:
    """Yield what a paper's file says of a dotted key, grids aside; None stands for nothing."""
    yield None
    layers: list[Any] = [paper.defaults, *paper.datasets.values(), *paper.methods.values()]
    for scale in paper.scales.values():
        layers += [scale.overrides, *scale.datasets.values(), *scale.methods.values()]
        layers += [own.set for own in scale.artefacts.values()]
    yield from (dotted_keys.get(layer, key) for layer in layers)
