"""The arrays of a run's exports that tables and figures read: their shapes, kinds and values.

The digest of an export shows that it is as it was written. What was written may still be another
thing: by a method of one's own, an older version, or somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from fedlogit.errors import DataError

__all__ = ["check_arrays"]

_MOST = 2**31  # of the classes of a text, where no array says how many there are
_MAY_BE_EMPTY = frozenset({"held-out samples"})


class _Array(NamedTuple):
    """What an array holds.

    Attributes:
        axes: What is counted along each axis: as many of them in every array of the run.
        of: Numbers, which may not be known ("gaps"); classes, some of which may be -1 for unknown
            ("labels"); clients; or whether something is so.
    """

    axes: tuple[str, ...]
    of: Literal["numbers", "gaps", "classes", "labels", "clients", "flags"] = "numbers"


_OWNED = _Array(("clients", "classes"), "flags")
_ARRAYS: dict[tuple[str, str], _Array] = {
    ("aggregation", "weights"): _Array(("clients", "points")),
    ("aggregation", "labels"): _Array(("points",), "labels"),
    ("aggregation", "owned"): _OWNED,
    ("aggregation", "held_out_logits"): _Array(("held-out samples", "classes")),
    ("aggregation", "held_out_labels"): _Array(("held-out samples",), "classes"),
    ("aggregation", "held_out_clients"): _Array(("held-out samples",), "clients"),
    ("evidence", "evidence"): _Array(("rounds", "clients", "classes"), "gaps"),
    ("probes", "images"): _Array(("models", "classes", "channels", "height", "width")),
    ("probes", "owned"): _OWNED,
    ("shapley", "values"): _Array(("clients",)),
    ("test_logits", "logits"): _Array(("predictors", "samples", "classes")),
    ("test_logits", "labels"): _Array(("samples",), "classes"),
}


def check_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], needed: Iterable[str], sizes: Mapping[str, int]
) -> None:
    """Refuse an export that lacks an array, or has another than methods and metrics agree on.

    Args:
        path: The file, whose name says which export it is.
        arrays: What is in it.
        needed: The arrays that are read.
        sizes: How many clients, models (the server's is one more) and classes the run has.

    Raises:
        DataError: naming the file, the array and what it should be.
    """
    known = dict(sizes)
    for name in needed:
        if name not in arrays:
            raise DataError(f"{path}: array {name!r} is missing")
        wanted = _ARRAYS.get((path.stem, name))
        if wanted is not None:
            where = f"{path}: array {name!r}"
            _check_shape(where, arrays[name], wanted.axes, known)
            _check_values(where, arrays[name], wanted, known)


def _check_shape(
    where: str, array: np.ndarray, axes: tuple[str, ...], known: dict[str, int]
) -> None:
    """Refuse another shape; what is counted for the first time becomes known."""
    fits = array.ndim == len(axes) and all(
        known.get(axis, found) == found and (found > 0 or axis in _MAY_BE_EMPTY)
        for axis, found in zip(axes, array.shape, strict=True)
    )
    if not fits:
        counted = ", ".join(f"{known[axis]} {axis}" if axis in known else axis for axis in axes)
        raise DataError(f"{where} has shape {array.shape}, should have ({counted})")
    known.update(zip(axes, array.shape, strict=True))


def _check_values(where: str, array: np.ndarray, wanted: _Array, known: Mapping[str, int]) -> None:
    """Refuse values of another kind, out of range or not finite."""
    if wanted.of == "flags":
        if array.dtype.kind not in "biu":
            raise DataError(f"{where} is of {array.dtype}, should be of bool")
    elif wanted.of in ("numbers", "gaps"):
        if array.dtype.kind not in "fiu":
            raise DataError(f"{where} is of {array.dtype}, should be of numbers")
        if not (np.isfinite(array) | (wanted.of == "gaps") & np.isnan(array)).all():
            raise DataError(f"{where} has numbers that are not finite")
    else:
        least = -1 if wanted.of == "labels" else 0
        most = known.get("clients" if wanted.of == "clients" else "classes", _MOST) - 1
        whole = array.dtype.kind in "iu"
        if not whole or (array.size and not least <= array.min() <= array.max() <= most):
            raise DataError(f"{where} should have integers from {least} to {most}")
