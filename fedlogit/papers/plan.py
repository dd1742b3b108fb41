"""The questions a workflow asks: what to make, which runs that needs, which run lives at a path.

The answers that scripts need are files below ``results/plan``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from fedlogit.config import Settings
from fedlogit.engine_names import CPU_ENGINES
from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers.artefact_file import artefact_json, claims_of
from fedlogit.papers.asked import no_such_scale, with_datasets, without_scale
from fedlogit.papers.component_checks import check_components
from fedlogit.papers.expansion import expand
from fedlogit.papers.loading import load_paper
from fedlogit.papers.model import Paper
from fedlogit.papers.plan_files import PlanFiles, digest
from fedlogit.papers.planned import Cell, PlannedArtefact
from fedlogit.papers.resolved import ResolutionCache, ResolvedRun
from fedlogit.spec import RunSpec

__all__ = ["Plan"]

T = TypeVar("T")


class Plan:
    """Everything that the chosen papers need.

    The configured scale is expanded at once, so that a mistake in it shows before anything runs;
    other scales when a path asks for them.

    Attributes:
        papers: The papers to make, without those that have none of the data sets asked for.
        chosen: Those of them that have the configured scale and, at it, a run on these.
        artefacts: Their tables and figures at that scale.
    """

    def __init__(self, settings: Settings, folder: Path, results: Path = Path("results")) -> None:
        """Read the papers in `folder`; `results` is where runs are found and written.

        Raises:
            FedlogitError: for any mistake in the settings or in a paper's file.
        """
        self.settings = settings
        self.results = results
        self._folder = folder
        papers = {name: load_paper(name, folder) for name in settings.papers}
        self._resolutions = ResolutionCache(results / "plan")
        for paper in papers.values():
            self._resolutions.check(paper, check_components)
        self.papers = with_datasets(papers, settings.datasets or ())
        self._runs: dict[str, ResolvedRun] = {}
        self._clients: dict[str, ResolvedRun] = {}
        self._splits: dict[str, RunSpec] = {}
        self._files = PlanFiles(results / "plan")
        self._made: dict[tuple[str, str], list[PlannedArtefact]] = {}
        self._drawn: dict[tuple[str, str], dict[str, Any]] = {}
        self._whole: dict[tuple[str, str], dict[str, PlannedArtefact]] = {}
        self._lacking = without_scale(papers, settings.scale)
        # What finished runs cover is drawn at every scale.
        if len(self._lacking) == len(papers) and not (settings.frozen and settings.partial):
            raise no_such_scale(papers, settings.scale)
        scaled = [name for name in self.papers if name not in self._lacking]
        self.artefacts: list[PlannedArtefact] = [
            a for name in scaled for a in self.of(name, settings.scale)
        ]
        self.chosen = [name for name in scaled if self._whole[name, settings.scale]]
        if not self.chosen and not settings.partial:
            raise FedlogitError(
                f"no run of {', '.join(papers)} at scale {settings.scale} is on"
                f" {', '.join(settings.datasets or ())}; give other datasets or another scale"
            )

    def left_out(self) -> str:
        """Return a line that names the papers without a run that was asked for, or ""."""
        scale, datasets = self.settings.scale, ", ".join(self.settings.datasets or ())
        kept, lacking = self.chosen, self._lacking
        if self.settings.partial:  # drawn at every scale
            kept, lacking = list(self.papers), {}
        others = [name for name in self.settings.papers if name not in {*kept, *lacking}]
        parts = [f"{name} (has no scale {scale}, but {has})" for name, has in lacking.items()]
        if others:
            parts.insert(0, f"{', '.join(others)} (no run on {datasets} at scale {scale})")
        return f"left out: {'; '.join(parts)}" if parts else ""

    def of(self, paper: str, scale: str) -> list[PlannedArtefact]:
        """Return the tables and figures of a paper at a scale, without runs to be left out."""
        if (paper, scale) not in self._made:
            whole = expand(
                self._paper(paper),
                scale,
                self.settings.seeds,
                self.settings.datasets,
                self.settings.overrides(),
                self._resolutions.resolve,
            )
            for artefact in whole:
                for cell in artefact.cells:
                    if cell.run not in self._runs:
                        self._note(cell.resolved)
            self._resolutions.save()
            self._whole[paper, scale] = {artefact.id: artefact for artefact in whole}
            self._made[paper, scale] = [self._kept(artefact) for artefact in whole]
        return [artefact for artefact in self._made[paper, scale] if artefact.cells]

    def whole(self, paper: str, scale: str) -> list[PlannedArtefact]:
        """Return the tables and figures of a paper at a scale with all runs, finished or not."""
        self.of(paper, scale)
        return list(self._whole[paper, scale].values())

    def judged(self, paper: str, scale: str) -> list[PlannedArtefact]:
        """Return what a paper's summary rests on: its tables, and figures that claims name.

        Also those without any run: what they claim is not run.
        """
        self.of(paper, scale)
        found = self._made[paper, scale]
        return [a for a in found if a.kind == "table" or claims_of(a)]

    def artefact(self, paper: str, scale: str, id_: str) -> PlannedArtefact:
        """Return one table or figure.

        Raises:
            FedlogitError: if there is none of that name, with the nearest one.
        """
        found = {artefact.id: artefact for artefact in self.of(paper, scale)}
        if id_ not in found:
            raise unknown(f"table or figure of {paper} at scale {scale}", id_, found)
        return found[id_]

    def everywhere(self) -> list[PlannedArtefact]:
        """Return the tables and figures of every scale, in the papers' order."""
        return [
            artefact
            for paper in self.papers.values()
            for scale in paper.scales
            for artefact in self.of(paper.paper, scale)
        ]

    def covered(self) -> list[PlannedArtefact]:
        """Return what finished runs cover: whole for some data set and seed, at any scale."""
        return [a for a in self.everywhere() if self._whole_somewhere(a)]

    def runs(self, artefact: PlannedArtefact) -> list[str]:
        """Return the runs of an artefact, as paths below the folder of runs, each once."""
        return list(dict.fromkeys(cell.run for cell in artefact.cells))

    def refuse_missing(self, artefacts: Iterable[PlannedArtefact]) -> None:
        """Refuse to go on if training is frozen and runs of these tables and figures are missing.

        Raises:
            FedlogitError: with a line per missing run: its path, and what needs it.
        """
        if not self.settings.frozen:
            return
        missing: dict[str, list[str]] = {}
        needed = set()
        for artefact in artefacts:
            for run in self.runs(artefact):
                needed.add(run)
                if not self.finished(run):
                    name = f"{artefact.paper.paper}/{artefact.scale}/{artefact.id}"
                    missing.setdefault(run, []).append(name)
        if missing:
            raise FedlogitError(
                f"frozen = true, but {len(missing)} of {len(needed)} runs are missing"
                " (make pull may bring them; frozen = false trains them):"
                + "".join(f"\n  {run}  for {', '.join(of)}" for run, of in missing.items())
            )

    def refuse_unfit(self, runs: Iterable[str]) -> None:
        """Refuse to go on if some of these runs are missing and could not be trained as configured.

        Raises:
            FedlogitError: with each reason, and how many runs it stops.
        """
        if self.settings.frozen or self.settings.engine == "auto":
            return
        from fedlogit import methods
        from fedlogit.data import card
        from fedlogit.engine import check_engine
        from fedlogit.runs.workloads import client_workloads

        device = "cuda" if self.settings.device.startswith("cuda") else "cpu"
        missing = [run for run in dict.fromkeys(runs) if not self.finished(run)]
        reasons: Counter[str] = Counter()
        for spec in (spec for spec in map(self.spec_of_run, missing) if not spec.ledger_only):
            *sizes, channels = card(spec.dataset).shape or (0,)  # channels come last there
            method, shape = methods.get(spec.method), (channels, *sizes)
            try:
                check_engine(self.settings.engine, client_workloads(spec, method, shape, device))
            except FedlogitError as error:
                reasons[str(error)] += 1
        if reasons:
            why = "; ".join(f"{n} of {len(missing)} runs: {r}" for r, n in reasons.items())
            raise FedlogitError(f"engine = {self.settings.engine!r} does not fit: {why}")

    def on_gpu(self, spec: RunSpec) -> bool:
        """Return whether a run trains on a GPU where there is one."""
        trains_on_cpu = self.settings.device == "cpu" or self.settings.engine in CPU_ENGINES
        return not trains_on_cpu and not spec.ledger_only

    def artefact_file(self, artefact: PlannedArtefact) -> str:
        """Write what drawing an artefact needs, unless the file has it; return its path.

        The path ends in ``<id>.<digest of the content>.json``.
        """
        paper, scale = artefact.paper.paper, artefact.scale
        self.of(paper, scale)
        if (paper, scale) not in self._drawn:
            runs = str(self.results / "runs")
            contents = {a.id: artefact_json(a, runs) for a in self._made[paper, scale]}
            self._drawn[paper, scale] = {
                f"{paper}/{scale}/{id_}.{digest(content)}": content
                for id_, content in contents.items()
            }
        known = self._drawn[paper, scale]
        (path,) = (path for path in known if path.startswith(f"{paper}/{scale}/{artefact.id}."))
        return self._files.write(".", path, known, lambda content: content)

    def spec_file(self, run: str) -> str:
        """Write a run's spec, unless the file says so already; return its path."""
        self.spec_of_run(run)
        return self._files.write("runs", run, self._runs, _as_json)

    def split_file(self, split: str) -> str:
        """Write what a division of the data depends on, unless it is there; return its path."""
        self.spec_of_split(split)
        return self._files.write("partitions", split, self._splits, RunSpec.split_key)

    def finished(self, run: str) -> bool:
        """Return whether a run has a result."""
        return os.path.exists(f"{self.results}/runs/{run}/result.json")  # noqa: PTH110 (asked often)

    def spec_of_run(self, path: str) -> RunSpec:
        """Return the spec of the run at `path`.

        Raises:
            FedlogitError: if no paper at any scale has it.
        """
        return self._find(path, "run", self._runs).spec

    def spec_of_split(self, path: str) -> RunSpec:
        """Return the spec of some run whose data are divided as at `path`."""
        return self._find(path, "division of the data", self._splits)

    def clients_of(self, run: str) -> str | None:
        """Return the clients that a run in stages shares with others, as a path like a run's.

        Returns:
            None for a run that is made in one piece.

        Raises:
            FedlogitError: if no paper at any scale has the run.
        """
        clients = self._find(run, "run", self._runs).clients
        return clients.run if clients else None

    def spec_of_clients(self, path: str) -> RunSpec:
        """Return the spec of the clients at `path`.

        Raises:
            FedlogitError: if no run at any scale has such clients.
        """
        return self._find(path, "set of clients", self._clients).spec

    def answering(self, path: str) -> tuple[str, str, RunSpec]:
        """Return the record, the weights and the spec of the clients at `path`.

        Raises:
            FedlogitError: if they are neither the clients of a one-shot run, nor those of a run
                that keeps its weights.
        """
        spec = self._shared_or_run(path).spec
        if path in self._clients:
            folder = self.results / "clients" / path
            return str(folder / "clients.json"), str(folder / "weights.safetensors"), spec
        if "weights" not in spec.export:
            raise FedlogitError(f"run {path} keeps no weights; give export: [weights] in its grid")
        folder = self.results / "runs" / path
        return str(folder / "result.json"), str(folder / "exports/weights.safetensors"), spec

    def clients_file(self, path: str) -> str:
        """Write the clients' spec, unless the file says so already; return its path."""
        self.spec_of_clients(path)
        return self._files.write("clients", path, self._clients, _as_json)

    def splits(self) -> list[str]:
        """Return the divisions of the data at the configured scale, as paths below their folder."""
        cells = (cell for artefact in self.artefacts for cell in artefact.cells)
        return list(dict.fromkeys(cell.resolved.split for cell in cells))

    def split_of(self, path: str) -> str:
        """Return the division of the data of a run or a set of clients, as a path like `splits`'.

        Raises:
            FedlogitError: if no paper at any scale has it.
        """
        return self._shared_or_run(path).split

    def _shared_or_run(self, path: str) -> ResolvedRun:
        """Return the clients at `path`, or the run, for which another scale may be expanded."""
        return self._clients.get(path) or self._find(path, "run", self._runs)

    def _note(self, found: ResolvedRun) -> None:
        """Remember a run, the division of its data, and the clients of one in stages."""
        self._runs[found.run] = found
        self._splits.setdefault(found.split, found.spec)
        if found.clients:
            self._clients[found.clients.run] = found.clients

    def _find(self, path: str, kind: str, known: dict[str, T]) -> T:
        for _ in self._scales():
            if path in known:
                return known[path]
        raise FedlogitError(f"{path} is no {kind} of {', '.join(self.papers)} at any scale")

    def _scales(self) -> Iterator[None]:
        """Expand one more scale at every step, the configured one first."""
        yield
        for paper in self.papers.values():
            for scale in paper.scales:
                self.of(paper.paper, scale)
                yield

    def _paper(self, name: str) -> Paper:
        if name not in self.papers:
            error = unknown("paper in config.yaml's 'papers'", name, self.papers)
            if name not in self.settings.papers and (self._folder / f"{name}.yaml").exists():
                error = FedlogitError(f"{error}; add it there, or give --config 'papers=[{name}]'")
            raise error
        return self.papers[name]

    def _whole_somewhere(self, artefact: PlannedArtefact) -> bool:
        """Return whether every run on some data set with some seed has a result."""
        finished: dict[tuple[str, int], bool] = {}
        for cell in self._whole[artefact.paper.paper, artefact.scale][artefact.id].cells:
            key = (cell.spec.dataset, cell.spec.seed)
            done = self.finished(cell.run)
            finished[key] = finished.get(key, True) and done
        return any(finished.values())

    def _kept(self, artefact: PlannedArtefact) -> PlannedArtefact:
        if not self.settings.partial:
            return artefact
        cells: list[Cell] = []
        left_out: list[tuple[int, Cell]] = []
        for cell, wanted in artefact.planned():
            if wanted and self.finished(cell.run):
                cells.append(cell)
            else:
                left_out.append((len(cells), cell))
        return replace(artefact, cells=tuple(cells), left_out=tuple(left_out))


def _as_json(found: ResolvedRun) -> Any:
    return found.spec.model_dump(mode="json")
