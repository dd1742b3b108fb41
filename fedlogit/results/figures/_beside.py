"""Lines and points with bars beside each other, so that none hides another at the same place."""

from __future__ import annotations

import numpy as np
import pandas as pd

__all__ = ["MOVED", "line_shifts", "moved", "to_the_right"]

MOVED = ", points moved sideways"
"""What a figure says of it, after what its bars are; the ticks are at the true places."""

_MARKER = 0.09  # inches that a marker is wide
_BAR = 0.055  # inches from a bar to a marker beside it, or to another bar
_APART = 0.04  # inches between the ends of bars one above the other
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


def to_the_right(x: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return where points stand across so that all are seen: none further left than it is.

    One after the other, as given, each has the first free place: the first point stays.

    Args:
        x: Where they are across, in inches, (n,).
        y: How high they are.
        low: The lower ends of their bars.
        high: The upper ends.
    """
    places = x.copy()
    for i in range(1, len(x)):
        needed = np.where(np.abs(y[:i] - y[i]) < _MARKER, _MARKER, 0.0)
        bars_meet = (low[:i] <= high[i] + _APART) & (low[i] <= high[:i] + _APART)
        needed = np.maximum(needed, np.where(bars_meet, _BAR, 0.0))
        choices = [x[i], *(beside for beside in places[:i] + needed if beside > x[i])]
        places[i] = min(
            place for place in choices if (np.abs(place - places[:i]) >= needed - 1e-9).all()
        )
    return places
