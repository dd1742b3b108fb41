"""Writes what scripts need to know of a plan to files below ``results/plan``."""

from __future__ import annotations

from typing import Any

from fedlogit.papers.plan import Plan
from fedlogit.papers.plan_files import PlanFiles, digest
from fedlogit.papers.planned import PlannedArtefact
from fedlogit.papers.resolved import ResolvedRun
from fedlogit.spec import RunSpec

__all__ = ["PlanWriter"]


class PlanWriter:
    """Writes a plan's files, each unless it is there and says so already; returns their paths.

    All methods raise a `FedlogitError` for what the plan does not have.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._files = PlanFiles(plan.layout.plans)
        self._artefacts: dict[tuple[str, str], dict[str, tuple[str, Any]]] = {}

    def artefact_file(self, artefact: PlannedArtefact) -> str:
        """Write what drawing an artefact needs.

        The path ends in ``<id>.<digest of the content>.json``.
        """
        files = self._artefact_files(artefact.paper.paper, artefact.scale)
        path, _ = files[artefact.id]
        return self._files.write(".", path, dict(files.values()), lambda content: content)

    def spec_file(self, run: str) -> str:
        """Write a run's spec."""
        self._plan.spec_of_run(run)
        return self._files.write("runs", run, self._plan.known.runs, _as_json)

    def clients_file(self, path: str) -> str:
        """Write the spec of the clients at `path`."""
        self._plan.spec_of_clients(path)
        return self._files.write("clients", path, self._plan.known.clients, _as_json)

    def split_file(self, split: str) -> str:
        """Write what a division of the data depends on."""
        self._plan.spec_of_split(split)
        return self._files.write("partitions", split, self._plan.known.splits, RunSpec.split_key)

    def _artefact_files(self, paper: str, scale: str) -> dict[str, tuple[str, Any]]:
        """Return the path and the content of each artefact's file, by the artefact's name."""
        if (paper, scale) not in self._artefacts:
            runs = str(self._plan.layout.runs)
            contents = {a.id: a.as_artefact(runs).plain() for a in self._plan.all_of(paper, scale)}
            self._artefacts[paper, scale] = {
                id_: (f"{paper}/{scale}/{id_}.{digest(content)}", content)
                for id_, content in contents.items()
            }
        return self._artefacts[paper, scale]


def _as_json(run: ResolvedRun) -> Any:
    return run.spec.model_dump(mode="json")
