"""What a paper's file plans at a scale: tables and figures, and the runs that each is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedlogit.papers.model import Figure, Paper, Table
from fedlogit.papers.resolved import ResolvedRun
from fedlogit.spec import RunSpec

__all__ = ["Cell", "PlannedArtefact", "Refused"]


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


@dataclass(frozen=True)
class Refused:
    """A place in a grid for which there is no run, because the method says that it cannot do it.

    Attributes:
        before: How many of the artefact's cells come before it, also of those left out.
        axes: Where it stands on the axes.
        why: What the method says, after its name.
    """

    before: int
    axes: dict[str, Any]
    why: str


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
