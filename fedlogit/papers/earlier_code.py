"""Finished runs whose own modules have changed since; tables and figures show them as they are."""

from __future__ import annotations

from collections.abc import Iterator

from fedlogit.errors import DataError
from fedlogit.files import read_json
from fedlogit.papers.plan import Plan
from fedlogit.runs.external_code import external_code
from fedlogit.spec import RunSpec

__all__ = ["made_by_earlier_code"]

_NAMED = 2


def made_by_earlier_code(plan: Plan) -> str:
    """Return a line that names the finished runs of which a module outside fedlogit changed, or "".

    Only runs at the plan's scale count. Damaged ones do not: whatever reads them says so.
    """
    changed = {run: names for run, spec in _runs(plan) if (names := _changed(plan, run, spec))}
    if not changed:
        return ""
    modules = ", ".join(dict.fromkeys(name for names in changed.values() for name in names))
    folders = [str(plan.layout.run(run)) for run in changed]
    more = f" and {len(folders) - _NAMED} more" if len(folders) > _NAMED else ""
    some = "a finished run was" if len(folders) == 1 else f"{len(folders)} finished runs were"
    return (
        f"{modules} changed after {some} made with it; they are shown as they are. To train them"
        f" anew, remove {', '.join(folders[:_NAMED])}{more}"
    )


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
    now = external_code(spec.model_dump(mode="json"))
    try:
        made = read_json(plan.layout.result(run))["provenance"].get("own_code", {})
    except (DataError, KeyError, TypeError, AttributeError):
        return []
    return [name for name, digest in now.items() if made.get(name, digest) != digest]
