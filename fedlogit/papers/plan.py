"""The questions a workflow asks: what to make, which runs that needs, which run lives at a path.

`fedlogit.papers.plan_writer` writes the answers that scripts need to files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from fedlogit.config import Settings
from fedlogit.engine_names import CPU_ENGINES
from fedlogit.errors import FedlogitError, unknown
from fedlogit.papers.component_checks import check_components
from fedlogit.papers.expansion import expand
from fedlogit.papers.loading import list_papers, load_paper
from fedlogit.papers.planned import Cell, PlannedArtefact
from fedlogit.papers.resolved import ResolutionCache, ResolvedRun, RunIndex
from fedlogit.papers.schema import JUDGED_SCALE, Paper
from fedlogit.papers.selection import (
    choose_them,
    no_such_scale,
    not_planned,
    with_datasets,
    without_scale,
)
from fedlogit.runs import layout
from fedlogit.runs.paths import ResultsLayout
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
        layout: Where things lie below the folder of results.
        known: The runs of all scales that were expanded so far.
    """

    def __init__(self, settings: Settings, folder: Path, results: Path = Path("results")) -> None:
        """Read the papers in `folder`; `results` is where runs are found and written.

        Raises:
            FedlogitError: for any mistake in the settings or in a paper's file.
        """
        self.settings = settings
        self.results = results
        self.layout = ResultsLayout(results)
        self._runs_folder = str(self.layout.runs)
        self._folder = folder
        papers = {name: load_paper(name, folder) for name in settings.papers}
        self._resolutions = ResolutionCache(self.layout.plans)
        for paper in papers.values():
            self._resolutions.check(paper, check_components)
        self.papers = with_datasets(papers, settings.datasets or ())
        self.known = RunIndex()
        self._artefacts: dict[tuple[str, str], list[PlannedArtefact]] = {}
        self._unfiltered: dict[tuple[str, str], dict[str, PlannedArtefact]] = {}
        self._lacking_scale = without_scale(papers, settings.scale)
        # What finished runs cover is drawn at every scale, whichever is named beside it.
        at_any = settings.frozen and settings.partial and settings.scale == JUDGED_SCALE
        if len(self._lacking_scale) == len(papers) and not at_any:
            raise no_such_scale(papers, settings.scale, self._others_with(settings.scale))
        scaled = [name for name in self.papers if name not in self._lacking_scale]
        self.artefacts: list[PlannedArtefact] = [
            a for name in scaled for a in self.drawable_of(name, settings.scale)
        ]
        self.chosen = [name for name in scaled if self._unfiltered[name, settings.scale]]
        if not self.chosen and not settings.partial:
            raise FedlogitError(
                f"no run of {', '.join(papers)} at scale {settings.scale} is on"
                f" {', '.join(settings.datasets or ())}; give other datasets or another scale"
            )

    def left_out(self) -> str:
        """Return a line that names the papers without a run that was asked for, or ""."""
        scale, datasets = self.settings.scale, ", ".join(self.settings.datasets or ())
        kept, lacking = self.chosen, self._lacking_scale
        if self.settings.partial:  # drawn at every scale
            kept, lacking = list(self.papers), {}
        others = [name for name in self.settings.papers if name not in {*kept, *lacking}]
        parts = [f"{name} (has no scale {scale}, but {has})" for name, has in lacking.items()]
        if others:
            parts.insert(0, f"{', '.join(others)} (no run on {datasets} at scale {scale})")
        return f"left out: {'; '.join(parts)}" if parts else ""

    def unfinished(self) -> str:
        """Return a line that names the papers of which `partial` leaves nothing to draw, or ""."""
        drawn = {artefact.paper.paper for artefact in self.artefacts}
        names = [name for name in self.chosen if name not in drawn]
        if not names:
            return ""
        return (
            f"partial = true, but no run of {', '.join(names)} at scale {self.settings.scale} has"
            " finished here, so nothing of it is drawn; make pull may bring some, and without"
            " partial = true they are trained"
        )

    def drawable_of(self, paper: str, scale: str) -> list[PlannedArtefact]:
        """Return the tables and figures of a paper at a scale that have runs to draw."""
        return [artefact for artefact in self.planned_of(paper, scale) if artefact.cells]

    def planned_of(self, paper: str, scale: str) -> list[PlannedArtefact]:
        """Return the same, and those of which no run is left."""
        if (paper, scale) not in self._artefacts:
            unfiltered = expand(
                self._paper(paper),
                scale,
                self.settings.seeds,
                self.settings.datasets,
                self.settings.overrides(),
                self._resolutions.resolve,
            )
            for artefact in unfiltered:
                for cell in artefact.cells:
                    self.known.add(cell.resolved)
            self._resolutions.save()
            self._unfiltered[paper, scale] = {artefact.id: artefact for artefact in unfiltered}
            self._artefacts[paper, scale] = [
                self._filtered_artefact(artefact) for artefact in unfiltered
            ]
        return list(self._artefacts[paper, scale])

    def unfiltered_of(self, paper: str, scale: str) -> list[PlannedArtefact]:
        """Return the tables and figures of a paper at a scale with all runs, finished or not."""
        self.planned_of(paper, scale)
        return list(self._unfiltered[paper, scale].values())

    def judged(self, paper: str, scale: str) -> list[PlannedArtefact]:
        """Return what a paper's summary rests on: its tables, and figures that claims name.

        Also those without any run: what they claim is not run.
        """
        return [a for a in self.planned_of(paper, scale) if a.kind == "table" or a.claims]

    def artefact(self, paper: str, scale: str, id_: str) -> PlannedArtefact:
        """Return one table or figure.

        Raises:
            FedlogitError: if there is none of that name, with the nearest one, or no run of it.
        """
        found = {artefact.id: artefact for artefact in self.drawable_of(paper, scale)}
        if id_ not in found:
            unfinished = id_ in self._unfiltered[paper, scale]
            datasets = self.settings.datasets or ()
            raise not_planned(self._paper(paper), scale, id_, datasets, unfinished=unfinished)
        return found[id_]

    def at_every_scale(self) -> list[PlannedArtefact]:
        """Return the tables and figures of every scale, in the papers' order."""
        return [
            artefact
            for paper in self.papers.values()
            for scale in paper.scales
            for artefact in self.drawable_of(paper.paper, scale)
        ]

    def covered(self) -> list[PlannedArtefact]:
        """Return what finished runs cover: whole for some data set and seed, at any scale."""
        return [a for a in self.at_every_scale() if self._is_covered(a)]

    def runs(self, artefact: PlannedArtefact) -> list[str]:
        """Return the runs of an artefact, as paths below the folder of runs, each once."""
        return list(dict.fromkeys(cell.run for cell in artefact.cells))

    def on_gpu(self, spec: RunSpec, *, grouped: bool = False) -> bool:
        """Return whether a run's job asks for a GPU where there is one.

        Args:
            spec: The run.
            grouped: Whether the job is one of a group, all of which ask for the same: a run that
                only counts bytes then asks for a GPU, too.
        """
        trains_on_cpu = self.settings.device == "cpu" or self.settings.engine in CPU_ENGINES
        return not trains_on_cpu and (grouped or not spec.ledger_only)

    def finished(self, run: str) -> bool:
        """Return whether a run has a result."""
        # Asked of ten thousands of runs: a path for each would take four times as long.
        return os.path.exists(f"{self._runs_folder}/{run}/{layout.RESULT}")  # noqa: PTH110

    def spec_of_run(self, path: str) -> RunSpec:
        """Return the spec of the run at `path`.

        Raises:
            FedlogitError: if no paper at any scale has it.
        """
        return self._find(path, "run", self.known.runs).spec

    def spec_of_split(self, path: str) -> RunSpec:
        """Return the spec of some run whose data are divided as at `path`."""
        return self._find(path, "partition of the data", self.known.splits)

    def clients_of(self, run: str) -> str | None:
        """Return the clients that a run in stages shares with others, as a path like a run's.

        Returns:
            None for a run that is made in one piece.

        Raises:
            FedlogitError: if no paper at any scale has the run.
        """
        clients = self._find(run, "run", self.known.runs).clients
        return clients.run if clients else None

    def spec_of_clients(self, path: str) -> RunSpec:
        """Return the spec of the clients at `path`.

        Raises:
            FedlogitError: if no run at any scale has such clients.
        """
        return self._find(path, "set of clients", self.known.clients).spec

    def trained_weights(self, path: str) -> tuple[str, str, RunSpec]:
        """Return the record, the weights and the spec of the clients at `path`.

        Raises:
            FedlogitError: if they are neither the clients of a one-shot run, nor those of a run
                that keeps its weights.
        """
        spec = self._clients_or_run(path).spec
        if path in self.known.clients:
            folder = self.layout.clients(path)
            return str(folder / layout.CLIENTS), str(folder / layout.WEIGHTS), spec
        if "weights" not in spec.export:
            raise FedlogitError(f"run {path} keeps no weights; give export: [weights] in its grid")
        folder = self.layout.run(path)
        return str(folder / layout.RESULT), str(folder / layout.EXPORTS / layout.WEIGHTS), spec

    def splits(self) -> list[str]:
        """Return the partitions of data at the configured scale, as paths below their folder."""
        cells = (cell for artefact in self.artefacts for cell in artefact.cells)
        return list(dict.fromkeys(cell.resolved.split for cell in cells))

    def split_of(self, path: str) -> str:
        """Return the partition of the data of a run or a set of clients, as a path like `splits`'.

        Raises:
            FedlogitError: if no paper at any scale has it.
        """
        return self._clients_or_run(path).split

    def _clients_or_run(self, path: str) -> ResolvedRun:
        """Return the clients at `path`, or the run, for which another scale may be expanded."""
        return self.known.clients.get(path) or self._find(path, "run", self.known.runs)

    def _find(self, path: str, kind: str, known: dict[str, T]) -> T:
        for _ in self._expanded_scales():
            if path in known:
                return known[path]
        raise FedlogitError(f"{path} is no {kind} of {', '.join(self.papers)} at any scale")

    def _expanded_scales(self) -> Iterator[None]:
        """Expand one more scale at every step, the configured one first."""
        yield
        for paper in self.papers.values():
            for scale in paper.scales:
                self.drawable_of(paper.paper, scale)
                yield

    def _paper(self, name: str) -> Paper:
        if name not in self.papers:
            error = unknown("paper in config.yaml's 'papers'", name, self.papers)
            if name not in self.settings.papers and (self._folder / f"{name}.yaml").exists():
                error = FedlogitError(f"{error}; {choose_them(name)}")
            raise error
        return self.papers[name]

    def _others_with(self, scale: str) -> list[str]:
        """Return the papers that have a scale, of those that the settings do not name."""
        found = []
        for name in list_papers(self._folder):
            with suppress(FedlogitError):  # of a paper that nobody asked for
                if (
                    name not in self.settings.papers
                    and scale in load_paper(name, self._folder).scales
                ):
                    found.append(name)
        return found

    def _is_covered(self, artefact: PlannedArtefact) -> bool:
        """Return whether every run on some data set with some seed has a result."""
        finished: dict[tuple[str, int], bool] = {}
        for cell in self._unfiltered[artefact.paper.paper, artefact.scale][artefact.id].cells:
            key = (cell.spec.dataset, cell.spec.seed)
            done = self.finished(cell.run)
            finished[key] = finished.get(key, True) and done
        return any(finished.values())

    def _filtered_artefact(self, artefact: PlannedArtefact) -> PlannedArtefact:
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
