"""What two runs have come to, compared: to the bit, or as far as rounding carries them apart."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import torch
from safetensors.torch import load_file

from fedlogit.runs import layout

__all__ = ["difference", "distance", "sent", "untimed_rows", "weights"]

# A vote may turn with the last bit, so that runs on two engines come apart: columns by this much,
# each tensor of a model by this share of its length.
_OF_A_COLUMN, _OF_A_MODEL = 0.02, 0.005


def untimed_rows(folder: Path) -> list[dict[str, str]]:
    """Return a run's rows, one a round, without columns of seconds, which no two runs share."""
    with (folder / layout.ROUNDS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in rows]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the final weights of a run that exported them."""
    return load_file(folder / layout.EXPORTS / layout.WEIGHTS)


def sent(folder: Path) -> dict[str, int]:
    """Return the bytes of all rounds by column, such as ``bytes_up.logits``."""
    totals: dict[str, int] = {}
    for row in untimed_rows(folder):
        for name, value in row.items():
            if name.startswith("bytes"):
                totals[name] = totals.get(name, 0) + int(value or 0)
    return totals


def difference(one: Path, other: Path) -> str:
    """Return the first place in which two runs are not the same to the bit; "" if there is none."""
    for column, number, a, b in _cells(one, other):
        if a != b:
            return f"round {number}: {column} is {a or 'missing'} and {b or 'missing'}"
    ours, theirs = weights(one), weights(other)
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in ours or name not in theirs or not torch.equal(ours[name], theirs[name]):
            return f"the final weights {name} are not the same"
    return ""


def distance(one: Path, other: Path) -> str:
    """Return the first place in which two runs are further apart than engines; "" if none is."""
    for column, number, a, b in _cells(one, other):
        if a != b and not (a and b and _near(float(a), float(b))):
            return f"round {number}: {column} is {a or 'missing'} and {b or 'missing'}"
    theirs = weights(other)
    for name, value in weights(one).items():
        apart = (theirs[name].double() - value.double()).norm()
        if apart > _OF_A_MODEL * (1 + value.double().norm()):
            return f"the final weights {name} are {apart:.2g} apart"
    return ""


def _near(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_OF_A_COLUMN, abs_tol=_OF_A_COLUMN)


def _cells(one: Path, other: Path) -> Iterator[tuple[str, int, str, str]]:
    """Yield column, round and both values of each cell of two runs' rows."""
    none: dict[str, str] = {}
    rows = zip_longest(untimed_rows(one), untimed_rows(other), fillvalue=none)
    for number, (ours, theirs) in enumerate(rows, 1):
        for column in {**ours, **theirs}:
            yield column, number, ours.get(column, ""), theirs.get(column, "")
