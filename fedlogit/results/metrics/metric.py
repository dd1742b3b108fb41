"""What a metric is: a name, how people read it, and how it comes from a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fedlogit.results.runs.run import Run

__all__ = ["Metric", "Unit"]

Unit = Literal["share", "MB", "GB", "MiB", "bytes", "s", "nats", ""]


@dataclass(frozen=True)
class Metric:
    """A number of a run.

    Attributes:
        name: What papers' files and CSVs call it.
        label: What captions and axes call it.
        compute: From a run to its value; None takes the column of ``rounds.csv`` of that name, at
            the last round that has it.
        unit: ``share`` lies between 0 and 1, so that per cent makes sense.
        decimals: Digits after the point; of a share four, and two in per cent. None is for a number
            of which nobody knows how large it is, or whether it is whole: it has significant digits
            instead.
        at_round: Its value after a round, as in ``jsd@3``; None takes the column.
        absence: Of a column that only some runs have: which, for the message of one without it.
    """

    name: str
    label: str
    compute: Callable[[Run], float] | None = None
    unit: Unit = ""
    decimals: int | None = 0
    at_round: Callable[[Run, int], float] | None = None
    absence: str = ""

    def places(self, percent: bool) -> int | None:
        """Return the digits after the point, of a value or of one in per cent; None as above."""
        if self.unit == "share":
            return 2 if percent else 4
        return self.decimals
