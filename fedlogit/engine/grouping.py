"""Putting alike things together, and cutting a sequence into pieces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

__all__ = ["chunks", "group_by"]

T = TypeVar("T")


def group_by(keys: Iterable[Hashable]) -> list[list[int]]:
    """Return the positions of each key that occurs, in order of first occurrence."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        groups[key].append(i)
    return list(groups.values())


def chunks(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield `size` items at a time; the last chunk may be shorter."""
    rest = iter(items)
    while chunk := tuple(islice(rest, size)):
        yield chunk
