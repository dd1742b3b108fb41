"""Where names of points stand, so that none hides a point, a line or another name.

Everything is in inches from the lower left corner of the axes; boxes are left, low, right, high.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["NEAR", "Obstacle", "anchors", "cross", "overlap", "place", "width_of"]

_HEIGHT = 0.15  # of a line of text
NEAR = 0.09  # between a point and its name
_PASSES = 8
_ASIDE = (NEAR, 0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5)  # between a point and a name, across
_UP = np.arange(-16, 17) * 0.08
_ALONG = np.linspace(0, 1, 15)  # where a line is looked at
_NAME, _LEADER, _ACROSS = 20.0, 5.0, 6.0  # costs: two names, two leaders, a leader over a name


class Obstacle(NamedTuple):
    """What a name should not lie on: its box, and what that would cost, in inches of a leader."""

    box: tuple[float, float, float, float]
    cost: float


def width_of(name: str) -> float:
    """Return how wide a name of 8.5 points is in inches, about, with the space behind it."""
    return 0.06 + 0.065 * len(name)


def place(
    points: np.ndarray,
    names: Sequence[str],
    obstacles: Sequence[Obstacle],
    room: tuple[float, float],
) -> np.ndarray:
    """Return the boxes of names, each near its point: one after the other has the cheapest place.

    A place costs the way from the point, and what the name and the line to its point would lie on.

    Args:
        points: What the names name, (n, 2).
        names: Their texts.
        obstacles: What is drawn already.
        room: Width and height of the axes.
    """
    choices = [_choices(point, width_of(name)) for point, name in zip(points, names, strict=True)]
    fixed = [
        _costs_alone(point, boxes, obstacles, room)
        for point, boxes in zip(points, choices, strict=True)
    ]
    by_axis = [np.argsort(points[:, axis], kind="stable") for axis in (1, 0)]
    orders = [list(order) for one in by_axis for order in (one, one[::-1])]
    found = [_settled_boxes(points, choices, fixed, order) for order in orders]
    return min(found, key=lambda one: one[1])[0]


def _settled_boxes(
    points: np.ndarray,
    choices: Sequence[np.ndarray],
    fixed: Sequence[np.ndarray],
    order: Sequence[int],
) -> tuple[np.ndarray, float]:
    """Return the boxes once no name has a cheaper one, taken in this order, and what they cost."""
    boxes = np.array([own[np.argmin(cost)] for own, cost in zip(choices, fixed, strict=True)])
    boxes = boxes.reshape(-1, 4)
    for _ in range(_PASSES):
        before, total = boxes.copy(), 0.0
        for i in order:
            others = np.arange(len(boxes)) != i
            shared = _costs_beside_others(points[i], choices[i], points[others], boxes[others])
            best = int(np.argmin(fixed[i] + shared))
            boxes[i] = choices[i][best]
            total += float(fixed[i][best] + shared[best] / 2)
        if np.array_equal(before, boxes):
            break
    return boxes, total


def anchors(points: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return where lines to points begin: at the middle of the side that is nearer, (n, 2)."""
    right = boxes[:, 0] >= points[..., 0]
    x = np.where(right, boxes[:, 0], boxes[:, 2])
    return np.stack([x, (boxes[:, 1] + boxes[:, 3]) / 2], axis=-1)


def _choices(point: np.ndarray, width: float) -> np.ndarray:
    """Return the boxes in which a name may stand, to the right of its point and to the left."""
    lefts = [*(point[0] + dx for dx in _ASIDE), *(point[0] - dx - width for dx in _ASIDE)]
    x, y = (grid.ravel() for grid in np.meshgrid(lefts, point[1] + _UP))
    return np.stack([x, y - _HEIGHT / 2, x + width, y + _HEIGHT / 2], axis=-1)


def _costs_alone(
    point: np.ndarray, boxes: np.ndarray, obstacles: Sequence[Obstacle], room: tuple[float, float]
) -> np.ndarray:
    """Return what each box costs, whatever the other names do."""
    ends = anchors(point, boxes)
    way = np.hypot(np.maximum(np.abs(ends[:, 0] - point[0]) - NEAR, 0), ends[:, 1] - point[1])
    cost = way + way**2 + 0.05 * (boxes[:, 0] < point[0])  # right, if both sides are as good
    outside = (boxes[:, :2] < 0).any(axis=1) | (boxes[:, 2:] > np.array(room)).any(axis=1)
    there = np.array([obstacle.box for obstacle in obstacles]).reshape(-1, 4)
    prices = np.array([obstacle.cost for obstacle in obstacles])
    own = overlap(np.array([[*point, *point]]), there)[0]
    over = _lines_over_boxes(point, ends, there[~own]) @ (0.3 * prices[~own])
    return np.asarray(cost + 1000.0 * outside + overlap(boxes, there) @ prices + over)


def _costs_beside_others(
    point: np.ndarray, boxes: np.ndarray, points: np.ndarray, there: np.ndarray
) -> np.ndarray:
    """Return what each box of a name costs beside the boxes where the others stand."""
    ends, others = anchors(point, boxes), anchors(points, there)
    cost = _NAME * overlap(boxes, there) + _ACROSS * _lines_over_boxes(point, ends, there)
    cost += _LEADER * cross(point, ends, points, others)
    for number, (start, end) in enumerate(zip(points, others, strict=True)):
        cost[:, number] += _ACROSS * _lines_over_boxes(start, end[None], boxes)[0]
    return np.asarray(cost.sum(axis=1))


def overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which boxes share a point with which others, bool (boxes, others)."""
    a, b = boxes[:, None], others[None]
    return np.asarray(
        (a[..., 2] >= b[..., 0])
        & (a[..., 0] <= b[..., 2])
        & (a[..., 3] >= b[..., 1])
        & (a[..., 1] <= b[..., 3])
    )


def _lines_over_boxes(point: np.ndarray, ends: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return which lines from a point to an end pass over which boxes, bool (ends, boxes)."""
    along = point + _ALONG[:, None, None] * (ends - point)  # (steps, ends, 2)
    x, y = along[..., 0][..., None], along[..., 1][..., None]
    inside = (x >= boxes[:, 0]) & (x <= boxes[:, 2]) & (y >= boxes[:, 1]) & (y <= boxes[:, 3])
    return np.asarray(inside.any(axis=0))


def cross(
    point: np.ndarray, ends: np.ndarray, points: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """Return which lines from a point to an end cross which other lines, bool (ends, others)."""
    here, end = point[None, None], ends[:, None]
    there, other = points[None], others[None]
    apart = _side(there, other, here) * _side(there, other, end) < 0
    return np.asarray(apart & (_side(here, end, there) * _side(here, end, other) < 0))


def _side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return on which side of the line from a to b lies c: 1 left, -1 right, 0 on it."""
    along, to = b - a, c - a
    return np.asarray(np.sign(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0]))
