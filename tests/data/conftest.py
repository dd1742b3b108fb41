"""A tiny gray-scale data set, 6 + 4 images of 2 x 3 pixels in 2 classes, in MNIST's files."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from fedlogit.data import DATASETS, Card
from fedlogit.data.content import content_digest

NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


def idx(array: np.ndarray) -> bytes:
    """Return an array as an idx file."""
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def arrays():
    return {
        "x_train": np.arange(36, dtype=np.uint8).reshape(6, 2, 3, 1),
        "y_train": np.array([0, 1, 0, 1, 1, 0], dtype=np.int64),
        "x_test": np.arange(100, 124, dtype=np.uint8).reshape(4, 2, 3, 1),
        "y_test": np.array([1, 0, 0, 1], dtype=np.int64),
    }


@pytest.fixture
def tiny(arrays, monkeypatch):
    """Return the card of the tiny data set, known as ``tiny`` while the test runs."""
    about = Card(
        "tiny", "Tiny", 2, (2, 3, 1), 6, 4, (0.1,), (0.2,), "none", "https://example.org",
        digest=content_digest(arrays),
    )  # fmt: skip
    monkeypatch.setitem(DATASETS, "tiny", about)
    return about


@pytest.fixture
def idx_files(arrays):
    """Return the four gzipped idx files, by name."""
    squeezed = {k: a[..., 0] if k[0] == "x" else a for k, a in arrays.items()}
    return {f"{NAMES[k]}.gz": gzip.compress(idx(a)) for k, a in squeezed.items()}


@pytest.fixture
def mirror(arrays, tmp_path):
    """Return a mirror folder as it is usually made: no channel axis, uint8 labels."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    flat = {k: a[..., 0] if k[0] == "x" else a.astype(np.uint8) for k, a in arrays.items()}
    np.savez(folder / "tiny.npz", **flat)
    return folder


@pytest.fixture
def sources(tmp_path):
    """Return a function that writes a sources file with the given sources of ``tiny``."""

    def write(text: str):
        path = tmp_path / "sources.yaml"
        path.write_text("tiny:\n" + text)
        return path

    return write
