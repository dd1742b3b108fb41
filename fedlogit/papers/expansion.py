"""From a paper and a scale to runs.

A run's spec is made of layers; a later one wins, and nested keys merge (``local: {epochs: 1}``
keeps ``first_epochs``; ``null`` removes a value)::

    paper defaults      < scale overrides
      < paper's dataset < scale's dataset
      < paper's method  < scale's method
      < scale's artefact
      < the cell of the grid

So the more specific wins, and at equal specificity the scale wins over the paper. A cell's axes
always win: a scale changes an axis by replacing its values, never by flattening it.

In a grid, a method or a partition is a short name from the paper's file, possibly with further
parameters: ``uwa(variance_floor=1e-6)`` is the paper's ``uwa`` with that one changed.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fedlogit.component import Component, ComponentRef, parse_call
from fedlogit.errors import Cannot, FedlogitError, MissingKeyError, unknown
from fedlogit.papers.completed import Completed, complete
from fedlogit.papers.model import Figure, Grid, Paper, Scale, Table
from fedlogit.reading import check_keys
from fedlogit.runs.places import run_dir, split_dir
from fedlogit.spec import RunSpec

__all__ = [
    "Cell",
    "PlannedArtefact",
    "Refused",
    "artefact_json",
    "check_calls",
    "claims_of",
    "expand",
    "method_of",
    "run_dir",
    "split_dir",
]


@dataclass(frozen=True)
class Cell:
    """A run in a grid, and where it stands on the axes (values as the file has them)."""

    completed: Completed
    axes: Mapping[str, Any]

    @property
    def spec(self) -> RunSpec:
        """The run's spec."""
        return self.completed.spec

    @property
    def run(self) -> str:
        """Where the run lives, as a path below the folder of runs."""
        return self.completed.run


@dataclass(frozen=True)
class Refused:
    """A place in a grid for which there is no run, because the method says that it cannot do it.

    Attributes:
        before: How many of the artefact's cells come before it, also of those left out.
        axes: Where it stands on the axes.
        reason: What the method says.
    """

    before: int
    axes: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class PlannedArtefact:
    """A table or figure of a paper at a scale, with the runs it is made of.

    Attributes:
        paper: The paper.
        id: Its name within the paper.
        scale: The scale.
        cells: A run and its place on the axes, each.
        left_out: Cells of the grid that it is drawn without, because their data set was not asked
            for or their runs do not exist; each with the number of `cells` that come before it.
        cannot: Places without a run, since the method says that it cannot do them.
    """

    paper: Paper
    id: str
    scale: str
    cells: tuple[Cell, ...]
    left_out: tuple[tuple[int, Cell], ...] = ()
    cannot: tuple[Refused, ...] = ()

    def planned(self) -> Iterator[tuple[Cell, bool]]:
        """Yield every cell of the grid, in its order, and whether it is one of `cells`."""
        left_out = list(self.left_out)
        for place in range(len(self.cells) + 1):
            while left_out and left_out[0][0] == place:
                yield left_out.pop(0)[1], False
            yield from ((cell, True) for cell in self.cells[place : place + 1])

    @property
    def entry(self) -> Table | Figure:
        """What the paper's file says about it."""
        return self.paper.artefacts[self.id]

    @property
    def kind(self) -> str:
        """``table`` or ``figure``."""
        return "table" if isinstance(self.entry, Table) else "figure"


def expand(
    paper: Paper,
    scale: str,
    seeds: tuple[int, ...] | None = None,
    datasets: tuple[str, ...] | None = None,
    overrides: Mapping[str, Any] | None = None,
    completing: Callable[[str], Completed] = complete,
) -> list[PlannedArtefact]:
    """Return the artefacts of `paper` at `scale`.

    Args:
        paper: As read by `load_paper`.
        scale: One of its scales.
        seeds: Use these instead of the seeds of the file.
        datasets: Keep only the cells on these datasets, of which the paper has one at least.
        overrides: A last layer for every run (a user's wish, such as ``precision``).
        completing: Completes a spec, which is given as JSON.

    Raises:
        FedlogitError: one line naming the file, the artefact, the cell and the key.
    """
    ids = paper.scale(scale).include or tuple(paper.artefacts)
    if datasets and not {*datasets} & {*paper.datasets}:
        raise unknown(f"dataset of paper {paper.paper}", datasets[0], paper.datasets)
    made = (
        _artefact(paper, scale, id_, seeds, datasets, overrides or {}, completing) for id_ in ids
    )
    return [artefact for artefact in made if artefact.cells]


def check_calls(paper: Paper) -> None:
    """Check every call of a method or a partition in a paper's file, used by a scale or not.

    Those from outside of this package are left to who uses them.

    Raises:
        FedlogitError: one line naming the file, the key and the parameter.
    """
    from fedlogit import methods
    from fedlogit.partition import get

    for place, section in _sections(paper):
        calls = (section.methods, "method", methods.get), (section.partitions, "partition", get)
        for entries, kind, found in calls:
            for alias, entry in entries.items():
                text = entry if isinstance(entry, str) else entry.get(kind)
                try:
                    _check_call(text, found)
                except FedlogitError as error:
                    where = f"{paper.paper}.yaml: {place}{kind}s.{alias}"
                    raise FedlogitError(f"{where}: {error}") from None


def _sections(paper: Paper) -> Iterator[tuple[str, Paper | Scale]]:
    """Yield the parts of a paper's file that define methods and partitions, and their keys."""
    yield "", paper
    for name, scale in paper.scales.items():
        yield f"scales.{name}.", scale


def _check_call(text: str | None, get: Callable[[ComponentRef], Component]) -> None:
    """Check a call of this package, to which a scale or a cell may add what must be given."""
    if text is None or ":" in text.partition("(")[0]:
        return
    with suppress(MissingKeyError):
        get(ComponentRef.model_validate(parse_call(text)))


def _artefact(
    paper: Paper,
    scale: str,
    id_: str,
    seeds: tuple[int, ...] | None,
    datasets: tuple[str, ...] | None,
    overrides: Mapping[str, Any],
    completing: Callable[[str], Completed],
) -> PlannedArtefact:
    """Expand one artefact; those that say ``from`` have the cells of their source."""
    source = paper.artefacts[id_].source or id_
    of_scale, entry = paper.scale(scale), paper.artefacts[source]
    own = of_scale.artefacts.get(source)
    chosen = seeds or (own and own.seeds) or of_scale.seeds or entry.seeds or paper.seeds
    written = (own and own.grid) or []  # for this scale, so its axes have nothing to replace
    axes = {**({} if written else of_scale.axes), **(own.axes if own else {})}
    grids = [
        {**grid, **{k: axes[k] for k in grid if k in axes}} for grid in written or entry.grid or []
    ]
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
            run = _resolve(layers | {"seed": seed} | calls, where, completing)
            axes = {name: cell[name] if name in cell else _get(layers, name) for name in names}
            if isinstance(run, Cannot):
                resolved = {"method": calls["method"]["params"]}
                axes |= {name: _get(resolved, name) for name in parameters}
                if not unwanted:
                    refused = Refused(len(cells) + len(left_out), axes, str(run))
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


def method_of(paper: Paper, entry: str) -> ComponentRef:
    """Return the method that an entry of a grid's axis `method` names, with all its parameters.

    Raises:
        FedlogitError: if the paper's file has no such method.
    """
    from fedlogit import methods

    call, _ = _named("method", entry, paper.methods, {})
    found = ComponentRef.model_validate(call)
    return ComponentRef(name=found.name, params=methods.get(found).params())


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
        merged = _layered(paper, paper.scale(scale), cell, last)
        return merged, _calls(paper, paper.scale(scale), merged)
    except FedlogitError as error:
        raise FedlogitError(f"{where}: {error}") from None


def _resolve(
    data: Mapping[str, Any], where: str, completing: Callable[[str], Completed]
) -> Completed | Cannot:
    """Return the completed spec of one cell and seed, or why its method cannot do it."""
    try:
        return completing(json.dumps(data, sort_keys=True))
    except Cannot as error:
        return error
    except FedlogitError as error:
        raise FedlogitError(f"{where}: {error}") from None


def _layered(
    paper: Paper, scale: Scale, cell: Mapping[str, Any], last: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge the layers in the order of the module's docstring; names are still short."""
    dataset = cell.get("dataset")
    if dataset not in paper.datasets:
        raise unknown("dataset", dataset, paper.datasets)
    _, of_method = _named("method", cell.get("method"), paper.methods, scale.methods)
    data: dict[str, Any] = {}
    for layer in (
        paper.defaults,
        scale.overrides,
        paper.datasets[dataset],
        scale.datasets.get(dataset, {}),
        *of_method,
        last,
        *(_nested(*item) for item in cell.items()),
    ):
        data = _merge(data, layer)
    return data


def _calls(paper: Paper, scale: Scale, data: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve the short names of a method and a partition."""
    method, _ = _named("method", data.get("method"), paper.methods, scale.methods)
    partition, _ = _named("partition", data.get("partition"), paper.partitions, scale.partitions)
    return {"method": method, "partition": partition}


def _named(
    kind: str,
    entry: Any,
    of_paper: Mapping[str, Any],
    of_scale: Mapping[str, Any],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Resolve a short name with further parameters.

    Returns:
        The call (``{"name", "params"}``), and the overrides that come with it: paper's, scale's.
    """
    if not isinstance(entry, str):
        raise FedlogitError(f"{kind} = {entry!r}: should be a name or a call like 'name(x=1)'")
    further = parse_call(entry)
    alias = further["name"]
    if alias not in of_paper:
        raise unknown(kind, alias, of_paper)
    name, params = alias, dict[str, Any]()
    layers: list[dict[str, Any]] = []
    for definition in (of_paper[alias], of_scale.get(alias, {})):
        layer = {kind: definition} if isinstance(definition, str) else dict(definition)
        if kind in layer:
            call = parse_call(layer.pop(kind))
            name, params = call["name"], {**params, **call["params"]}
        layers.append(layer)
    return {"name": name, "params": {**params, **further["params"]}}, layers


def _get(data: Any, key: str) -> Any:
    """Return the value of a dotted key, or None."""
    for part in key.split("."):
        data = data.get(part) if isinstance(data, Mapping) else None
    return data


def _nested(key: str, value: Any) -> dict[str, Any]:
    """Turn a dotted key into nested mappings, checking that it exists in a spec."""
    tree = value
    for part in reversed(key.split(".")):
        tree = {part: tree}
    check_keys(RunSpec, tree, f"axis {key}")
    return tree


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` on top; mappings merge, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def artefact_json(artefact: PlannedArtefact, runs: str = "results/runs") -> dict[str, Any]:
    """Return what drawing the artefact needs, as plain data; `runs` is the folder of the runs."""
    entry, paper = artefact.entry, artefact.paper
    optional = dict.fromkeys(("rows", "columns", "plot", "metrics", "analysis"))
    shown = optional | entry.model_dump(mode="json")
    # Without one the key is left out, so that plans keep their names.
    analysis = {"analysis": shown["analysis"]} if shown["analysis"] else {}
    return {
        "paper": paper.paper,
        "paper_title": paper.title,
        "id": artefact.id,
        "kind": artefact.kind,
        "scale": artefact.scale,
        "labels": paper.labels,
        **{
            key: shown[key]
            for key in (
                "title",
                "caption",
                "rows",
                "columns",
                "metric",
                "metrics",
                "plot",
                "options",
            )
        },
        **_caption(artefact),
        **analysis,
        "claims": claims_of(artefact),
        "runs": [
            {
                "dir": f"{runs}/{cell.run}",
                "digest": cell.spec.digest(),
                "axes": _shown_axes(cell),
            }
            for cell in artefact.cells
        ],
        **(_missing(artefact) if artefact.left_out else {}),
        **({"cannot": [_cannot(place) for place in artefact.cannot]} if artefact.cannot else {}),
    }


def _caption(artefact: PlannedArtefact) -> dict[str, str]:
    """Return the caption that the scale has in place of the paper's, if it has one."""
    own = artefact.paper.scale(artefact.scale).artefacts.get(artefact.id)
    return {"caption": own.caption} if own and own.caption is not None else {}


def claims_of(artefact: PlannedArtefact) -> dict[str, dict[str, Any]]:
    """Return the claims that its runs decide, as plain data."""
    stated = _claims(artefact.paper, artefact.scale)
    return {key: claim for key, claim in stated if claim["from"] == artefact.id}


def _claims(paper: Paper, scale: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the paper's claims as plain data, as the scale changes them."""
    changes = paper.scale(scale).claims
    for key, claim in paper.claims.items():
        own = changes[key].model_dump(mode="json", by_alias=True) if key in changes else {}
        given = {name: value for name, value in own.items() if value is not None}
        yield key, _merge(claim.model_dump(mode="json", by_alias=True), given)


def _missing(artefact: PlannedArtefact) -> dict[str, Any]:
    """Return what it is drawn without: how many runs of each data set, and where each belongs."""
    missing = {cell.run: cell.spec.dataset for _, cell in artefact.left_out}
    there = {cell.run: cell.spec.dataset for cell in artefact.cells}
    lacking, all_ = Counter(missing.values()), Counter((there | missing).values())
    places = [
        {"before": before, "axes": {"partition": cell.spec.partition.name, **_shown_axes(cell)}}
        for before, cell in artefact.left_out
    ]
    return {"left_out": {k: (n, all_[k]) for k, n in lacking.items()}, "missing": places}


def _cannot(place: Refused) -> dict[str, Any]:
    axes = {key: _shown(value) for key, value in place.axes.items()}
    return {"before": place.before, "axes": axes, "reason": place.reason}


def _shown_axes(cell: Cell) -> dict[str, Any]:
    """Return a run's place on the axes and its seed, as a table is sorted and labelled by."""
    return {k: _shown(v) for k, v in cell.axes.items()} | {"seed": cell.spec.seed}


def _shown(value: Any) -> Any:
    """Make an axis value one that a table can be sorted and labelled by."""
    return (
        "all" if value is None else json.dumps(value) if isinstance(value, list | dict) else value
    )
