"""From a paper and a scale to its tables and figures, each with its runs.

Every cell of a grid is a run for each seed; `fedlogit.papers.layers` says of what its spec is made.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fedlogit.errors import Cannot, FedlogitError, unknown
from fedlogit.papers.grids import grids_at, value_at
from fedlogit.papers.layers import calls_of, layered
from fedlogit.papers.metric_rounds import check_metric_rounds
from fedlogit.papers.model import Grid, Paper, Table
from fedlogit.papers.planned import Cell, PlannedArtefact, Refused
from fedlogit.papers.resolved import ResolvedRun, resolve_run
from fedlogit.papers.table_cells import check_table_cells

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
    made = (_artefact(paper, scale, id_, seeds, datasets, overrides or {}, resolver) for id_ in ids)
    planned = [artefact for artefact in made if artefact.cells]
    for artefact in planned:
        check_table_cells(artefact)
    if not overrides:  # with fewer rounds by a user's wish, a table may stay empty
        for artefact in planned:
            check_metric_rounds(artefact)
    return planned


def _artefact(
    paper: Paper,
    scale: str,
    id_: str,
    seeds: tuple[int, ...] | None,
    datasets: tuple[str, ...] | None,
    overrides: Mapping[str, Any],
    resolver: Callable[[str], ResolvedRun],
) -> PlannedArtefact:
    """Expand one artefact; those that say ``from`` have the cells of their source."""
    source = paper.artefacts[id_].source or id_
    of_scale, entry = paper.scale(scale), paper.artefacts[source]
    own = of_scale.artefacts.get(source)
    chosen = seeds or (own and own.seeds) or of_scale.seeds or entry.seeds or paper.seeds
    grids = grids_at(of_scale, source, entry)
    names = dict.fromkeys(key for grid in grids for key in grid)
    printed = (*entry.rows, *entry.columns) if isinstance(entry, Table) else ()
    parameters = [name for name in printed if name.startswith("method.")]
    last = {**(own.set if own else {}), **overrides}
    cells: dict[tuple[str, str], Cell] = {}
    left_out: dict[tuple[str, str], tuple[int, Cell]] = {}
    cannot: dict[str, Refused] = {}
    for cell in (cell for grid in grids for cell in _cells(grid)):
        unwanted = datasets and cell.get("dataset") not in datasets
        where = f"{paper.paper}.yaml: {source} at scale {scale}, {_describe(cell)}"
        layers, calls = _layers_and_calls(paper, scale, cell, last, where)
        for seed in chosen:
            run = _resolve(layers | {"seed": seed} | calls, where, resolver)
            axes = {name: cell[name] if name in cell else value_at(layers, name) for name in names}
            if isinstance(run, Cannot):
                resolved = {"method": calls["method"]["params"]}
                axes |= {name: value_at(resolved, name) for name in parameters}
                if not unwanted:
                    refused = Refused(len(cells) + len(left_out), axes, run.why)
                    cannot.setdefault(_describe(axes), refused)  # of all seeds alike
                continue
            axes |= {name: run.spec.setting(name) for name in parameters}
            key = run.run, _describe(axes)
            if unwanted:
                left_out.setdefault(key, (len(cells), Cell(run, axes)))
            else:
                cells[key] = Cell(run, axes)
    return PlannedArtefact(
        paper,
        id_,
        scale,
        tuple(cells.values()),
        tuple(left_out.values()),
        tuple(cannot.values()),
    )


def _cells(grid: Grid) -> Iterator[dict[str, Any]]:
    """Yield every combination of the axes' values."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _describe(cell: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in cell.items())


def _layers_and_calls(
    paper: Paper, scale: str, cell: Mapping[str, Any], last: Mapping[str, Any], where: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return one cell's layers, merged as the file has them, and the calls that its names mean."""
    try:
        merged = layered(paper, paper.scale(scale), cell, last)
        return merged, calls_of(paper, paper.scale(scale), merged)
    except FedlogitError as error:
        raise FedlogitError(f"{where}: {error}") from None


def _resolve(
    data: Mapping[str, Any], where: str, resolver: Callable[[str], ResolvedRun]
) -> ResolvedRun | Cannot:
    """Return the resolved spec of one cell and seed, or why its method cannot do it."""
    try:
        return resolver(json.dumps(data, sort_keys=True))
    except Cannot as error:
        return error
    except FedlogitError as error:
        raise FedlogitError(f"{where}: {error}") from None
