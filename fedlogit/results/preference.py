"""Which of several scales to show: one rule for the record and for what a paper's page has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Standing", "preferred"]


class Standing(NamedTuple):
    """What a scale has to show.

    Attributes:
        decided: How much it decides: numbers with a verdict, or claims.
        seeds: How many seeds it has.
    """

    decided: int
    seeds: int


def preferred(standings: Sequence[Standing]) -> int | None:
    """Return the place of the scale to show; None if there is none.

    It is the one that decides most, of equals the one with the most seeds, and of these the last.
    """
    order = [(standing, place) for place, standing in enumerate(standings)]
    return max(order)[1] if order else None
