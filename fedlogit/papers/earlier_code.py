"""Finished runs whose own modules have changed since; tables and figures show them as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedlogit.errors import DataError
from fedlogit.files import read_json
from fedlogit.papers.plan import Plan
from fedlogit.runs.external_code import external_code, external_modules
from fedlogit.runs.layout import CLIENTS
from fedlogit.spec import RunSpec

__all__ = ["made_by_earlier_code"]

_NAMED = 2


def made_by_earlier_code(plan: Plan) -> str:
    """Return a line that names the finished runs of which a module outside fedlogit changed, or "".

    It also names their clients and targets, which are not made anew by themselves, either. Only
    runs at the plan's scale count. Damaged ones do not: whatever reads them says so.
    """
    changed = {run: names for run, spec in _runs(plan) if (names := _changed(plan, run, spec))}
    if not changed:
        return ""
    modules = ", ".join(dict.fromkeys(name for names in changed.values() for name in names))
    runs = [plan.layout.run(run) for run in changed]
    some = "a finished run was" if len(runs) == 1 else f"{len(runs)} finished runs were"
    kinds = (runs, _targets(plan, changed), _clients(plan, changed))
    removed = [_first(paths) for paths in kinds if paths]
    return (
        f"{modules} changed after {some} made with it; they are shown as they are. To train them"
        f" anew, remove {', and '.join(removed)}"
    )


def _first(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(map(str, paths[:_NAMED]))}{more}"


def _targets(plan: Plan, changed: Mapping[str, Sequence[str]]) -> list[Path]:
    """Return the targets of runs in stages whose method is of a module that changed."""
    return [
        path.parent
        for run, names in changed.items()
        if {*names} & {*external_modules(plan.spec_of_run(run).method.model_dump())}
        and (path := plan.layout.targets(run)).exists()
    ]


def _clients(plan: Plan, changed: Iterable[str]) -> list[Path]:
    """Return the clients that runs in stages share and whose models are of a module that changed.

    Those that were trained anew since, for another run, are not among them.
    """
    found = dict.fromkeys(plan.clients_of(run) for run in changed)
    return [
        path
        for name in found
        if name is not None
        and (path := plan.layout.clients(name)).exists()
        and _differing(_models(plan.spec_of_clients(name)), path / CLIENTS)
    ]


def _models(spec: RunSpec) -> list[Any]:
    return [model.model_dump(mode="json") for model in spec.models]


def _runs(plan: Plan) -> Iterator[tuple[str, RunSpec]]:
    """Yield the runs of papers that name a module of one's own: asking all would take seconds."""
    own = {name for name, paper in plan.papers.items() if external_code(paper.model_dump())}
    for artefact in plan.artefacts:
        if artefact.paper.paper in own:
            yield from {cell.run: cell.spec for cell in artefact.cells}.items()


def _changed(plan: Plan, run: str, spec: RunSpec) -> list[str]:
    """Return the modules outside fedlogit that are no longer what a finished run was made with."""
    if not plan.finished(run):
        return []
    return _differing(spec.model_dump(mode="json"), plan.layout.result(run), "provenance")


def _differing(spec: Any, path: Path, *within: str) -> list[str]:
    """Return the modules outside fedlogit that a spec names and a record has in another version.

    Args:
        spec: As plain data, complete or not.
        path: The record.
        within: The keys that lead to its `own_code`.
    """
    now = external_code(spec)
    try:
        record = read_json(path)
        for key in within:
            record = record[key]
        made = record.get("own_code", {})
    except (DataError, KeyError, TypeError, AttributeError):
        return []
    return [name for name, digest in now.items() if made.get(name, digest) != digest]
