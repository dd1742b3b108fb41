"""The IDX format of MNIST and its relatives: a header of big-endian sizes, then uint8 values."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from fedlogit.errors import DataError

__all__ = ["read_idx"]

_UINT8 = 8  # the format's code of the only type that these data sets use


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Read an IDX file of uint8, compressed by gzip or not.

    Args:
        path: The file.
        shape: What it must hold; no more than that is ever decompressed.

    Raises:
        DataError: if it is damaged, or holds another type or shape.
    """
    header = 4 + 4 * len(shape)
    size = int(np.prod(shape))
    data = _read(path, header + size + 1)
    if len(data) < header or data[:3] != bytes([0, 0, _UINT8]) or data[3] != len(shape):
        raise DataError(f"{path.name} is not an IDX file of uint8 in {len(shape)} dimensions")
    found = tuple(np.frombuffer(data, ">u4", len(shape), 4).tolist())
    if found != shape:
        raise DataError(f"{path.name} has shape {found}, not {shape}")
    if len(data) != header + size:
        more = "more" if len(data) > header + size else "fewer"
        raise DataError(f"{path.name} has {more} values than the {size} its header promises")
    return np.frombuffer(data, np.uint8, size, header).reshape(shape)


def _read(path: Path, limit: int) -> bytes:
    """Return at most `limit` bytes of a file's content."""
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not compressed:
                return raw.read(limit)
            with gzip.open(raw) as file:
                return file.read(limit)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name} is damaged: {error}") from None
