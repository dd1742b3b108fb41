"""What a run's folder says of its training: rows, final weights, and all that must be the same."""

from __future__ import annotations

import csv
from pathlib import Path

import torch

from fedlogit.runs.compare_runs import exported_weights, untimed_rows

__all__ = ["exported_weights", "outcome", "rows", "same", "untimed_rows"]


def rows(folder: Path) -> list[dict[str, str]]:
    """Return a run's rows, one a round."""
    with (folder / "rounds.csv").open() as file:
        return list(csv.DictReader(file))


def outcome(folder: Path) -> tuple[list[dict[str, str]], dict[str, torch.Tensor]]:
    """Return a run's rows and weights, to keep, or to compare with `same`."""
    return untimed_rows(folder), {
        name: value.clone() for name, value in exported_weights(folder).items()
    }


def same(a: tuple, b: tuple) -> bool:
    """Return whether two outcomes are the same to the bit."""
    (rows_a, weights_a), (rows_b, weights_b) = a, b
    return (
        rows_a == rows_b
        and weights_a.keys() == weights_b.keys()
        and all(torch.equal(value, weights_b[name]) for name, value in weights_a.items())
    )
