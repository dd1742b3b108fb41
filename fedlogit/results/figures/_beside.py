"""Lines with bars beside each other, so that none hides another's at the same place."""

from __future__ import annotations

import numpy as np
import pandas as pd

__all__ = ["MOVED", "line_shifts", "moved"]

MOVED = ", points moved sideways"
"""What a figure says of it, after what its bars are; the ticks are at the true places."""

_BESIDE = 0.035  # of the axis, between two lines that would hide each other's bars


def line_shifts(places: pd.Series, lines: int, *, log: bool = False) -> list[float]:
    """Return how far each line is moved to the right, symmetrically about the true places.

    Neighbouring lines are apart by little beside the way to the next place.

    Args:
        places: Where all points are.
        lines: How many lines there are.
        log: Whether the axis is logarithmic; shifts are then those of logarithms.
    """
    different = np.unique(np.log(places) if log else places)
    gaps = np.diff(different)
    step = float(min(_BESIDE * np.ptp(different), gaps.min() / 2 / lines)) if len(gaps) else 0.0
    return [(place - (lines - 1) / 2) * step for place in range(lines)]


def moved(places: pd.Series, shift: float | pd.Series, *, log: bool = False) -> pd.Series:
    """Return places moved by a shift, or each by its own; on a logarithmic axis by logarithms."""
    return places * np.exp(shift) if log else places + shift
