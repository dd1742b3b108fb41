"""Comparison of two finished runs: bit by bit, or within what rounding of two engines explains."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from fedlogit.runs import layout

if TYPE_CHECKING:  # `diff` compares rows alone, and PyTorch takes a second to import
    import torch

__all__ = [
    "approximate_difference",
    "exact_difference",
    "exported_weights",
    "total_bytes",
    "untimed_rows",
]

# The last bit may decide a vote, so runs on two engines differ: columns by this much, relative or
# absolute; each tensor of a model by this share of 1 + its norm.
_COLUMN_TOLERANCE, _WEIGHTS_TOLERANCE = 0.02, 0.005


def untimed_rows(folder: Path) -> list[dict[str, str]]:
    """Return a run's rows, one a round, without columns of seconds, which no two runs share."""
    with (folder / layout.ROUNDS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in rows]


def exported_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the final weights of a run that exported them."""
    from safetensors.torch import load_file

    return load_file(folder / layout.EXPORTS / layout.WEIGHTS)


def total_bytes(folder: Path) -> dict[str, int]:
    """Return the bytes of all rounds by column, such as ``bytes_up.logits``."""
    totals: dict[str, int] = {}
    for row in untimed_rows(folder):
        for name, value in row.items():
            if name.startswith("bytes"):
                totals[name] = totals.get(name, 0) + int(value or 0)
    return totals


def exact_difference(one: Path, other: Path) -> str:
    """Return the first cell or tensor in which two runs are not equal bit by bit, or ""."""
    import torch

    for column, number, a, b in _cells(one, other):
        if a != b:
            return f"round {number}: {column} is {a or 'missing'} and {b or 'missing'}"
    for name, ours, theirs in _weights(one, other):
        if ours is None or theirs is None or not torch.equal(ours, theirs):
            return f"the final weights {name} are not the same"
    return ""


def approximate_difference(one: Path, other: Path) -> str:
    """Return the first cell or tensor in which two runs differ by more than engines may, or ""."""
    for column, number, a, b in _cells(one, other):
        if a != b and not (a and b and _near(float(a), float(b))):
            return f"round {number}: {column} is {a or 'missing'} and {b or 'missing'}"
    for name, ours, theirs in _weights(one, other):
        if ours is None or theirs is None or ours.shape != theirs.shape:
            return f"the final weights {name} are of one run alone, or of another shape"
        apart = (theirs.double() - ours.double()).norm()
        if apart > _WEIGHTS_TOLERANCE * (1 + ours.double().norm()):
            return f"the final weights {name} are {apart:.2g} apart"
    return ""


def _weights(
    one: Path, other: Path
) -> Iterator[tuple[str, torch.Tensor | None, torch.Tensor | None]]:
    """Yield name and both values of each tensor of two runs' models; None where a run lacks it."""
    ours, theirs = exported_weights(one), exported_weights(other)
    for name in sorted(ours.keys() | theirs.keys()):
        yield name, ours.get(name), theirs.get(name)


def _near(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_COLUMN_TOLERANCE, abs_tol=_COLUMN_TOLERANCE)


def _cells(one: Path, other: Path) -> Iterator[tuple[str, int, str, str]]:
    """Yield column, round and both values of each cell of two runs' rows."""
    none: dict[str, str] = {}
    rows = zip_longest(untimed_rows(one), untimed_rows(other), fillvalue=none)
    for number, (ours, theirs) in enumerate(rows, 1):
        for column in {**ours, **theirs}:
            yield column, number, ours.get(column, ""), theirs.get(column, "")
