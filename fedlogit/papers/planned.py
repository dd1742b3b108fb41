"""What a paper's file plans at a scale: tables and figures, and the runs that each is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedlogit.papers.artefact import Artefact, Missing, Refused, RunRef
from fedlogit.papers.axis_values import scalar
from fedlogit.papers.resolved import ResolvedRun
from fedlogit.papers.schema import Claim, Figure, Paper, Table
from fedlogit.spec import RunSpec

__all__ = ["Cell", "PlannedArtefact"]


@dataclass(frozen=True)
class Cell:
    """A run in a grid, and where it stands on the axes (values as the file has them)."""

    resolved: ResolvedRun
    axes: Mapping[str, Any]

    @property
    def spec(self) -> RunSpec:
        """The run's spec."""
        return self.resolved.spec

    @property
    def run(self) -> str:
        """Where the run lives, as a path below the folder of runs."""
        return self.resolved.run

    @property
    def place(self) -> dict[str, Any]:
        """Its values on the axes and its seed, as a table is sorted and labelled by."""
        return {k: scalar(v) for k, v in self.axes.items()} | {"seed": self.spec.seed}


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
        cannot: Cells without a run, because the method does not support them.
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
    def kind(self) -> Literal["table", "figure"]:
        """``table`` or ``figure``."""
        return "table" if isinstance(self.entry, Table) else "figure"

    @property
    def claims(self) -> dict[str, Claim]:
        """The claims that its runs decide, as the scale changes them."""
        stated = self.paper.claims_at(self.scale)
        return {key: claim for key, claim in stated.items() if claim.source == self.id}

    def as_artefact(self, runs: str | Path) -> Artefact:
        """Return what drawing it needs; `runs` is the folder of the runs."""
        own = self.paper.scale(self.scale).artefacts.get(self.id)
        changes = {"caption": own.caption, "stands_for": own.stands_for} if own else {}
        stated = {key: value for key, value in self.entry if key in Artefact.model_fields}
        stated |= {key: value for key, value in changes.items() if value is not None}
        return Artefact(
            paper=self.paper.paper,
            paper_title=self.paper.title,
            id=self.id,
            kind=self.kind,
            scale=self.scale,
            reduced=self.paper.scale(self.scale).reduced,
            labels=self.paper.labels,
            claims=self.claims,
            runs=tuple(
                RunRef(dir=Path(runs, cell.run), digest=cell.spec.digest(), axes=cell.place)
                for cell in self.cells
            ),
            left_out=self._counts_left_out(),
            missing=tuple(
                Missing(before=n, axes={"partition": cell.spec.partition.name, **cell.place})
                for n, cell in self.left_out
            ),
            cannot=self.cannot,
            **stated,
        )

    def _counts_left_out(self) -> dict[str, tuple[int, int]]:
        """Return, for each data set that lacks runs, how many it lacks, and of how many."""
        missing = {cell.run: cell.spec.dataset for _, cell in self.left_out}
        there = {cell.run: cell.spec.dataset for cell in self.cells}
        every = Counter((there | missing).values())
        return {name: (n, every[name]) for name, n in Counter(missing.values()).items()}
