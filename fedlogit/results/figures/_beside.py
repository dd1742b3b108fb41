"""Lines and points with bars beside each other, so that none hides another at the same place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

__all__ = ["MOVED", "line_shifts", "moved", "to_the_right"]

MOVED = ", points moved sideways"
"""What a figure says of it, after what its bars are; the ticks are at the true places."""

_MARKER = 0.09  # inches that a marker is wide
_BAR = 0.055  # inches from a bar to a marker beside it, or to another bar
_APART = 0.04  # inches between the ends of bars one above the other
_BESIDE = 0.018  # of the axis, between two lines that would hide each other's bars


def line_shifts(lines: Sequence[Iterable[float]], *, log: bool = False) -> list[dict[float, float]]:
    """Return how far each line is moved to the right at each of its places, by place.

    Of the lines that have a point at a place, neighbours are apart by little beside the way to the
    next place, symmetrically about the true one. A line alone at a place stays there.

    Args:
        lines: Where each line has points.
        log: Whether the axis is logarithmic; shifts are then those of logarithms.
    """
    at = Counter(place for line in lines for place in set(line))
    different = np.unique(np.log(list(at)) if log else list(at))
    gaps = np.diff(different)
    most = max(at.values(), default=1)
    step = float(min(_BESIDE * np.ptp(different), gaps.min() / 2.5 / most)) if len(gaps) else 0.0
    before: Counter[float] = Counter()
    shifts: list[dict[float, float]] = []
    for line in lines:
        own = set(line)
        shifts.append({x: (before[x] - (at[x] - 1) / 2) * step for x in own})
        before.update(own)
    return shifts


def moved(places: pd.Series, shifts: Mapping[float, float], *, log: bool = False) -> pd.Series:
    """Return places moved by their shifts, if any; on a logarithmic axis by logarithms."""
    shift = places.map(shifts).fillna(0.0)
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
