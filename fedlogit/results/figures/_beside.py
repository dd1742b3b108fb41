"""Lines and points with bars beside each other, so that none hides another at the same place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

__all__ = ["MOVED", "apart", "line_shifts", "moved"]

MOVED = ", points moved sideways"
"""What a figure says of it, after what its bars are; the ticks are at the true places."""

_STEP = 0.04  # inches from a bar to another beside it, if few stand side by side
_HALF = 0.045  # inches from the middle of a marker to its ends, if its bar is no longer
_APART = 0.02  # inches between the ends of bars one above the other
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


def apart(
    x: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray, most: float
) -> np.ndarray:
    """Return where points stand across so that bars do not hide each other, hardly moved.

    Points whose bars or markers would meet at about one place stand side by side in the order
    given, around their own places; many stand closer together, so that none is further than `most`
    from its own.

    Args:
        x: Where they are across, in inches, rising, (n,).
        y: How high they are.
        low: The lower ends of their bars.
        high: The upper ends.
        most: How far a point may be moved.
    """
    places = x.copy()
    ends = np.minimum(low, y - _HALF), np.maximum(high, y + _HALF)
    for group in _hidden_groups(x, *ends):
        around = np.arange(len(group)) - (len(group) - 1) / 2
        places[group] += around * min(_STEP, most / max(around[-1], 0.5))
    return places


def _hidden_groups(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> Iterator[list[int]]:
    """Yield the points that would hide each other, directly or by way of others; two at least."""
    near = np.abs(x[:, None] - x[None]) < _STEP
    meet = (low[:, None] <= high[None] + _APART) & (low[None] <= high[:, None] + _APART)
    _, group = connected_components(near & meet, directed=False)
    for one in np.unique(group):
        members = np.flatnonzero(group == one)
        if len(members) > 1:
            yield list(members)
