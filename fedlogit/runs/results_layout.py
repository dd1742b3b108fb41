"""Where things lie below a folder of results.

Here and not beside plans, since a machine that only trains has no package that reads papers' files.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from fedlogit.runs import layout

__all__ = ["ResultsLayout"]

Name = str | PathLike[str]


@dataclass(frozen=True)
class ResultsLayout:
    """Paths below a folder of results, which need not be there.

    Attributes:
        root: The folder, such as ``results``.
    """

    root: Path

    @property
    def runs(self) -> Path:
        """The folder of all runs."""
        return self.root / "runs"

    @property
    def plans(self) -> Path:
        """The folder of what is planned."""
        return self.root / "plan"

    def run(self, run: Name) -> Path:
        """Return a run's folder; `run` is as `fedlogit.runs.places.run_dir` names it."""
        return self.runs / run

    def result(self, run: Name) -> Path:
        """Return the file that a finished run has."""
        return self.run(run) / layout.RESULT

    def clients(self, clients: Name) -> Path:
        """Return the folder of clients that runs in stages share; they are named like a run."""
        return self.root / "clients" / clients

    def targets(self, run: Name) -> Path:
        """Return the file of what a run in stages teaches its server's model."""
        return self.root / "targets" / run / layout.TARGETS

    def partition(self, split: Name) -> Path:
        """Return the folder of a division of data, which `split_dir` names."""
        return self.root / "partitions" / split

    def artefact(self, kind: str, paper: str, scale: str, id_: str, suffix: str) -> Path:
        """Return a file of a drawn table or figure."""
        return self.root / f"{kind}s" / paper / scale / f"{id_}.{suffix}"

    def summary(self, paper: str, scale: str) -> Path:
        """Return the folder of a paper's comparison at a scale."""
        return self.root / "summary" / paper / scale

    def page(self, paper: str, scale: str) -> Path:
        """Return the page of the report on a paper at a scale."""
        return self.root / "report" / paper / f"{scale}.html"
