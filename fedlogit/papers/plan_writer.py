"""Writes what commands need to know of a plan to files below ``results/plan``.

Each file is named by its content, as a run is by its spec, so that planning with other settings, or
only for show, never changes what another call is making. It is written when somebody asks for it,
and only if it is not there, so that its time stamp says since when it holds. All files of a folder
are written together: Snakemake looks into a folder once and remembers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fedlogit.files import write_atomic
from fedlogit.papers.artefact import Artefact
from fedlogit.papers.plan import Plan
from fedlogit.papers.planned import PlannedArtefact
from fedlogit.papers.resolved import ResolvedRun
from fedlogit.spec import RunSpec

__all__ = ["PlanWriter", "artefact_plan"]

T = TypeVar("T")


class PlanWriter:
    """Writes a plan's files, each unless it is there and says so already; returns their paths.

    All methods raise a `FedlogitError` for what the plan does not have.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._written: set[tuple[str, str, int]] = set()
        self._artefacts: dict[tuple[str, str], dict[str, tuple[str, Any]]] = {}

    def artefact_file(self, artefact: PlannedArtefact) -> str:
        """Write what drawing an artefact needs.

        The path ends in ``<id>.<digest of the content>.json``.
        """
        files = self._artefact_files(artefact.paper.paper, artefact.scale)
        path, _ = files[artefact.id]
        return self._write(".", path, dict(files.values()), lambda content: content)

    def spec_file(self, run: str) -> str:
        """Write a run's spec."""
        self._plan.spec_of_run(run)
        return self._write("runs", run, self._plan.known.runs, _as_json)

    def clients_file(self, path: str) -> str:
        """Write the spec of the clients at `path`."""
        self._plan.spec_of_clients(path)
        return self._write("clients", path, self._plan.known.clients, _as_json)

    def split_file(self, split: str) -> str:
        """Write what a partition of the data depends on."""
        self._plan.spec_of_split(split)
        return self._write("partitions", split, self._plan.known.splits, RunSpec.split_key)

    def _artefact_files(self, paper: str, scale: str) -> dict[str, tuple[str, Any]]:
        """Return the path and the content of each artefact's file, by the artefact's name."""
        if (paper, scale) not in self._artefacts:
            runs = self._plan.layout.runs
            artefacts = [a.as_artefact(runs) for a in self._plan.planned_of(paper, scale)]
            self._artefacts[paper, scale] = {a.id: (artefact_plan(a), a.plain()) for a in artefacts}
        return self._artefacts[paper, scale]

    def _write(
        self, kind: str, path: str, known: Mapping[str, T], content: Callable[[T], Any]
    ) -> str:
        """Write the files of all that is known in the folder of `path`; return that of `path`.

        Args:
            kind: Folder of such files.
            path: Name of the file that is asked for, without ``.json``; a key of `known`.
            known: What files of the kind are about, by name.
            content: What a file says, as JSON can.
        """
        root, folder = self._plan.layout.plans / kind, path.rpartition("/")[0]
        if (kind, folder, len(known)) not in self._written:  # more is known with another scale
            for other, value in known.items():
                if other.rpartition("/")[0] == folder:
                    _write_changed(root / f"{other}.json", content(value))
            self._written.add((kind, folder, len(known)))
        return str(root / f"{path}.json")


def artefact_plan(artefact: Artefact) -> str:
    """Return the path of an artefact's file below the folder of plans, without ``.json``."""
    name = f"{artefact.id}.{_digest(artefact.plain())}"
    return f"{artefact.paper}/{artefact.scale}/{name}"


def _as_json(run: ResolvedRun) -> Any:
    return run.spec.model_dump(mode="json")


def _digest(data: Any) -> str:
    """Return a name for what a plan says, in the order in which it says it."""
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:12]


def _write_changed(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=1) + "\n"  # in the paper's order, in which it is printed
    if not path.exists() or path.read_text() != text:
        with write_atomic(path) as temporary:
            temporary.write_text(text)
