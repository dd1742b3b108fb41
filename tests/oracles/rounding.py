"""What is read of predictions that are sent rounded, and how long the message is: number by number.

The levels of a uniform format are listed, and the nearest is taken.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["message_bytes", "read"]


def read(predictions: np.ndarray, form: str, bits: int = 0) -> np.ndarray:
    """Return what is read of (…, classes)."""
    rows = predictions.reshape(-1, predictions.shape[-1])
    return np.array([_row(row, form, bits) for row in rows]).reshape(predictions.shape)


def _row(row: np.ndarray, form: str, bits: int) -> list[float]:
    if form == "uniform":
        levels = np.linspace(row.min(), row.max(), 2**bits)
        return [levels[np.abs(levels - number).argmin()] for number in row]
    fraction = {"float16": 10, "bfloat16": 7}[form]  # bits after the first of a number
    return [_with_fraction(number, fraction) for number in row.tolist()]


def _with_fraction(number: float, bits: int) -> float:
    mantissa, exponent = math.frexp(number)  # mantissa from 0.5 to 1
    return math.ldexp(round(mantissa * 2 ** (bits + 1)) / 2 ** (bits + 1), exponent)


def message_bytes(predictions: int, classes: int, form: str, bits: int = 0) -> int:
    """Return the bytes of so many predictions in one message."""
    if form != "uniform":
        return 2 * predictions * classes
    return math.ceil(predictions * classes * bits / 8) + 8 * predictions
