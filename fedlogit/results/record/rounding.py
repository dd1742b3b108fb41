"""Verdicts that would be others against other numbers that a paper would print alike."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedlogit.results.metrics import is_share
from fedlogit.results.verdicts.rules import VERDICTS, Sample, is_exact, verdict

__all__ = ["printed_alike"]


def printed_alike(rows: pd.DataFrame, references: Path) -> pd.DataFrame:
    """Return the judged numbers whose verdict rounding decides.

    A printed mean or standard deviation may have been up to half a unit of its last digit more or
    less. The column `alike` lists the other verdicts, by a comma, that numbers within these ranges
    would get; `printed` has the mean in the file's digits.

    Args:
        rows: The record, with the numbers of each file in the file's order.
        references: The folder of the published numbers, which have the digits that are printed.
    """
    parts = []
    for name, part in rows.groupby("paper", sort=False):
        text = {"mean": str, "std": str}
        digits = pd.read_csv(references / f"{name}.csv", dtype=text, comment="#")[[*text]]
        halves = digits.map(_half_unit).to_numpy()
        told = zip(part.to_dict("records"), halves, strict=True)
        alike = [_others(row, *half) for row, half in told]
        parts.append(part.assign(printed=digits["mean"].to_numpy(), alike=alike))
    found = pd.concat(parts)
    return found[found["alike"] != ""]


def _half_unit(printed: Any) -> float:
    """Return half a unit of a number's last digit: 0.00005 of "0.8064"; 0 of what is missing."""
    if not isinstance(printed, str):
        return 0.0
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def _others(row: Mapping[Any, Any], mean: float, std: float) -> str:
    """Return the other verdicts of a number that may differ by so much, by a comma, or ""."""
    exact = is_exact(row["metric"])
    if row["verdict"] not in VERDICTS or (exact and row["ours"] == row["published"]):
        return ""  # nobody rounds a byte
    unit = 1.0 if is_share(row["metric"]) else abs(row["published"])
    ours = Sample(row["ours"], row["std"], row["n"])
    found = set()
    for up, wider in itertools.product((-1, 0, 1), repeat=2):
        theirs = Sample(
            row["published"] + up * mean,
            float(np.maximum(row["published_std"] + wider * std, 0)),  # NaN stays
            row["published_n"],
        )
        found.add(verdict(ours, theirs, unit, exact=exact))
    return ", ".join(name for name in VERDICTS if name in found - {row["verdict"]})
