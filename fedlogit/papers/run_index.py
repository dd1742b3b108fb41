"""Which run, division of data or set of clients lives at a path."""

from __future__ import annotations

from fedlogit.papers.resolved import ResolvedRun
from fedlogit.spec import RunSpec

__all__ = ["RunIndex"]


class RunIndex:
    """All that is known so far, by its path below the folder of such things.

    Attributes:
        runs: Runs.
        clients: The clients that runs in stages share.
        splits: The spec of some run whose data are divided so.
    """

    def __init__(self) -> None:
        self.runs: dict[str, ResolvedRun] = {}
        self.clients: dict[str, ResolvedRun] = {}
        self.splits: dict[str, RunSpec] = {}

    def add(self, run: ResolvedRun) -> None:
        """Remember a run, the division of its data, and the clients of one in stages."""
        if run.run in self.runs:
            return
        self.runs[run.run] = run
        self.splits.setdefault(run.split, run.spec)
        if run.clients:
            self.clients[run.clients.run] = run.clients
