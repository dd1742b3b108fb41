"""From a paper and a scale to its tables and figures, each with its runs.

Every cell of a grid is a run for each seed; `fedlogit.papers.layers` says of what its spec is made.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fedlogit import dotted_keys
from fedlogit.errors import FedlogitError, Unsupported, unknown
from fedlogit.papers.artefact import Refused
from fedlogit.papers.axis_values import scalar
from fedlogit.papers.grids import grids_at
from fedlogit.papers.layers import calls_of, merged_layers
from fedlogit.papers.planned import Cell, PlannedArtefact
from fedlogit.papers.planned_checks import check_metric_rounds, check_table_cells
from fedlogit.papers.resolved import ResolvedRun, resolve_run
from fedlogit.papers.schema import Grid, Paper
from fedlogit.papers.size_checks import check_sizes

__all__ = ["expand"]


def expand(
    paper: Paper,
    scale: str,
    seeds: tuple[int, ...] | None = None,
    datasets: tuple[str, ...] | None = None,
    overrides: Mapping[str, Any] | None = None,
    resolver: Callable[[str], ResolvedRun] = resolve_run,
) -> list[PlannedArtefact]:
    """Return the artefacts of `paper` at `scale`.

    Args:
        paper: As read by `load_paper`.
        scale: One of its scales.
        seeds: Use these instead of the seeds of the file.
        datasets: Keep only the cells on these datasets, of which the paper has one at least.
        overrides: A last layer for every run (a user's wish, such as ``precision``).
        resolver: Resolves a spec, which is given as JSON.

    Raises:
        FedlogitError: one line naming the file, the artefact, the cell and the key.
    """
    ids = paper.scale(scale).include or tuple(paper.artefacts)
    if datasets and not {*datasets} & {*paper.datasets}:
        raise unknown(f"dataset of paper {paper.paper}", datasets[0], paper.datasets)
    expansion = _Expansion(paper, scale, seeds, datasets, overrides or {}, resolver)
    planned = [artefact for artefact in map(expansion.artefact, ids) if artefact.cells]
    for artefact in planned:
        check_table_cells(artefact)
        check_sizes(artefact)
    if not overrides:  # with fewer rounds by a user's wish, a table may stay empty
        for artefact in planned:
            check_metric_rounds(artefact)
    return planned


class _Expansion(NamedTuple):
    """What `expand` is asked for; its fields are the arguments of that."""

    paper: Paper
    scale: str
    seeds: tuple[int, ...] | None
    datasets: tuple[str, ...] | None
    overrides: Mapping[str, Any]
    resolver: Callable[[str], ResolvedRun]

    def artefact(self, id_: str) -> PlannedArtefact:
        """Expand one artefact; those that say ``from`` have the cells of their source."""
        source = self.paper.artefacts[id_].source or id_
        of_scale, entry = self.paper.scale(self.scale), self.paper.artefacts[source]
        own = of_scale.artefacts.get(source)
        grids = grids_at(of_scale, source, entry)
        names = dict.fromkeys(key for grid in grids for key in grid)
        parameters = [name for name in entry.printed if name.startswith("method.")]
        last = {**(own.set if own else {}), **self.overrides}
        found = _GridPlaces()
        for cell in (cell for grid in grids for cell in _cells(grid)):
            wanted = not self.datasets or cell.get("dataset") in self.datasets
            where = f"{self.paper.paper}.yaml: {source} at scale {self.scale}, {_cell_text(cell)}"
            layers, calls = self._layers_and_calls(cell, last, where)
            for seed in self._seeds_of(source):
                run = self._resolved(layers | {"seed": seed} | calls, where)
                axes = _place(cell, layers, names)
                if isinstance(run, ResolvedRun):
                    axes |= {name: run.spec.setting(name) for name in parameters}
                    found.add(Cell(run, axes), wanted)
                elif wanted:
                    given = {"method": calls["method"]["params"]}
                    axes |= {name: dotted_keys.get(given, name) for name in parameters}
                    found.refuse(axes, run.why)
        return PlannedArtefact(
            self.paper,
            id_,
            self.scale,
            tuple(found.cells.values()),
            tuple(found.left_out.values()),
            tuple(found.cannot.values()),
        )

    def _seeds_of(self, source: str) -> tuple[int, ...]:
        """Return the seeds that were asked for, or else the most specific ones of the file."""
        of_scale, entry = self.paper.scale(self.scale), self.paper.artefacts[source]
        own = of_scale.artefacts.get(source)
        of_own = own.seeds if own else None
        return self.seeds or of_own or of_scale.seeds or entry.seeds or self.paper.seeds

    def _layers_and_calls(
        self, cell: Mapping[str, Any], last: Mapping[str, Any], where: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a cell's layers, merged as the file has them, and the calls its names mean."""
        try:
            merged = merged_layers(self.paper, self.paper.scale(self.scale), cell, last)
            return merged, calls_of(self.paper, self.paper.scale(self.scale), merged)
        except FedlogitError as error:
            raise FedlogitError(f"{where}: {error}") from None

    def _resolved(self, data: Mapping[str, Any], where: str) -> ResolvedRun | Unsupported:
        """Return the resolved spec of one cell and seed, or why its method cannot do it."""
        try:
            return self.resolver(json.dumps(data, sort_keys=True))
        except Unsupported as error:
            return error
        except FedlogitError as error:
            raise FedlogitError(f"{where}: {error}") from None


@dataclass(frozen=True)
class _GridPlaces:
    """The places of an artefact's grid, each once.

    Attributes:
        cells: The runs.
        left_out: The runs to be left out, each with the number of `cells` before it.
        cannot: The places without a run.
    """

    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    left_out: dict[tuple[str, str], tuple[int, Cell]] = field(default_factory=dict)
    cannot: dict[str, Refused] = field(default_factory=dict)

    def add(self, cell: Cell, wanted: bool) -> None:
        """Add a run; grids may have one at the same place again."""
        key = cell.run, _cell_text(cell.axes)
        if wanted:
            self.cells[key] = cell
        else:
            self.left_out.setdefault(key, (len(self.cells), cell))

    def refuse(self, axes: dict[str, Any], why: str) -> None:
        """Add a place whose method cannot do it, once for all seeds."""
        before = len(self.cells) + len(self.left_out)
        place = {key: scalar(value) for key, value in axes.items()}
        self.cannot.setdefault(_cell_text(axes), Refused(before=before, axes=place, why=why))


def _cells(grid: Grid) -> Iterator[dict[str, Any]]:
    """Yield every combination of the axes' values."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _place(
    cell: Mapping[str, Any], layers: Mapping[str, Any], names: Iterable[str]
) -> dict[str, Any]:
    """Return a cell's values on axes; on one that only other grids have, that of its layers."""
    return {name: cell[name] if name in cell else dotted_keys.get(layers, name) for name in names}


def _cell_text(cell: Mapping[str, Any]) -> str:
    """Return a cell as messages name it, in one line whatever its texts have."""
    text = ", ".join(f"{key}={value}" for key, value in cell.items())
    return text if text.isprintable() else ", ".join(f"{k}={v!r}" for k, v in cell.items())
