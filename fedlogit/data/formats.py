"""Decoders: from the raw files of a source to plain arrays. Nothing is unpickled.

Each takes the folder of raw files and the data set's card, and returns ``x_train`` (uint8, NHWC),
``y_train`` (int64), ``x_test`` and ``y_test``; or the bytes of a text. `FORMATS` has them by the
name that the catalogue uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from fedlogit.data.cards import Card
from fedlogit.data.idx import read_idx
from fedlogit.data.isic import decode_isic
from fedlogit.errors import DataError, unknown
from fedlogit.files import load_npz, read_json

__all__ = ["FORMATS", "decode", "digits"]

Arrays = dict[str, np.ndarray]


def decode(name: str, folder: Path, about: Card) -> Arrays:
    """Decode the raw files in `folder`.

    Raises:
        FedlogitError: if no decoder has that name.
        DataError: if a file is missing, damaged, or of the wrong size.
    """
    if name not in FORMATS:
        raise unknown("format", name, FORMATS)
    try:
        return FORMATS[name](folder, about)
    except (OSError, SyntaxError) as error:  # Pillow raises SyntaxError on a broken PNG
        raise DataError(f"{folder} cannot be decoded: {error}") from None


def _digits(folder: Path, about: Card) -> Arrays:  # noqa: ARG001 - comes with scikit-learn
    return digits()


def digits() -> Arrays:
    """Return scikit-learn's digits: 8 x 8 pixels in 0..16, times 15, as uint8.

    Sorted by class, every fifth sample is for testing: 1,437 to train on and 360 to test, and
    each class has its share in both. Within a split the original order stays.
    """
    raw = load_digits()
    images = (raw.images * 15).astype(np.uint8)[..., None]
    labels = raw.target.astype(np.int64)
    held = np.zeros(len(labels), dtype=bool)
    held[np.argsort(labels, kind="stable")[::5]] = True
    return {
        "x_train": images[~held],
        "y_train": labels[~held],
        "x_test": images[held],
        "y_test": labels[held],
    }


def _idx(folder: Path, about: Card, *, transposed: bool) -> Arrays:
    height, width, _ = about.shape
    arrays = {}
    for split, n in (("train", about.train), ("test", about.test)):
        x = read_idx(folder / f"{split}-images", (n, height, width))
        # EMNIST's files hold columns where MNIST's hold rows; upright is what one would draw.
        arrays[f"x_{split}"] = (x.transpose(0, 2, 1) if transposed else x)[..., None].copy()
        arrays[f"y_{split}"] = read_idx(folder / f"{split}-labels", (n,)).astype(np.int64)
    return arrays


def _cifar_rows(path: Path, n: int, label_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Read CIFAR's binary version: rows of labels (the finest last), then 3 x 32 x 32 pixels."""
    width = label_bytes + 3072
    if path.stat().st_size != n * width:
        raise DataError(f"{path.name} has {path.stat().st_size} bytes, not {n} rows of {width}")
    rows = np.fromfile(path, np.uint8).reshape(n, width)
    images = rows[:, label_bytes:].reshape(n, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, rows[:, label_bytes - 1].astype(np.int64)


def _cifar10_binary(folder: Path, about: Card) -> Arrays:
    n = about.train // 5
    parts = [_cifar_rows(folder / f"data_batch_{i}", n, 1) for i in range(1, 6)]
    x_test, y_test = _cifar_rows(folder / "test_batch", about.test, 1)
    return {
        "x_train": np.concatenate([x for x, _ in parts]),
        "y_train": np.concatenate([y for _, y in parts]),
        "x_test": np.ascontiguousarray(x_test),
        "y_test": y_test,
    }


def _cifar100_binary(folder: Path, about: Card) -> Arrays:
    arrays = {}
    for split, n in (("train", about.train), ("test", about.test)):
        x, arrays[f"y_{split}"] = _cifar_rows(folder / split, n, 2)
        arrays[f"x_{split}"] = np.ascontiguousarray(x)
    return arrays


def _sheet(path: Path, n: int) -> np.ndarray:
    """Read `n` images from a PNG that has one image per row: 32 x 32 RGB pixels in a line."""
    with Image.open(path, formats=["PNG"]) as image:
        if image.mode != "RGB" or image.size != (1024, n):
            raise DataError(f"{path.name} is {image.mode} {image.size}, not RGB {(1024, n)}")
        return np.asarray(image).reshape(n, 32, 32, 3)


def _json_labels(path: Path) -> np.ndarray:
    labels = read_json(path)
    if not isinstance(labels, list) or not all(type(v) is int and 0 <= v < 256 for v in labels):
        raise DataError(f"{path.name} is not a list of labels")
    return np.array(labels, np.int64)


def _cifar10_png(folder: Path, about: Card) -> Arrays:
    n = about.train // 5
    return {
        "x_train": np.concatenate([_sheet(folder / f"data_batch_{i}", n) for i in range(1, 6)]),
        "y_train": _json_labels(folder / "train_labels"),
        "x_test": _sheet(folder / "test_batch", about.test),
        "y_test": _json_labels(folder / "test_labels"),
    }


def _stl10_binary(folder: Path, about: Card) -> Arrays:
    """Read STL-10's unlabelled images (planes of columns) and shrink them, antialiased."""
    path = folder / "unlabeled"
    size = about.train * 3 * 96 * 96
    if path.stat().st_size != size:
        raise DataError(f"{path.name} has {path.stat().st_size} bytes, not {size}")
    raw = np.memmap(path, np.uint8, "r", shape=(about.train, 3, 96, 96))
    small = np.empty((about.train, *about.shape), np.uint8)
    for i in range(about.train):
        image = Image.fromarray(np.ascontiguousarray(raw[i].transpose(2, 1, 0)))
        small[i] = np.asarray(image.resize(about.shape[1::-1], Image.Resampling.BILINEAR))
    return {"x_train": small}


def _text(folder: Path, about: Card) -> Arrays:  # noqa: ARG001 - any text
    return {
        split: np.frombuffer((folder / split).read_bytes(), np.uint8)
        for split in ("train", "valid", "test")
    }


def _npz(folder: Path, about: Card) -> Arrays:
    """Read a mirror's arrays: images (n, h, w) or (n, h, w, c), labels of any integer type."""
    found = load_npz(folder / "arrays.npz")
    if not about.classes and "x" in found:
        found["x_train"] = found.pop("x")
    arrays = {key: found[key] for key in _KEYS if key in found}
    for key, array in arrays.items():
        if key.startswith("x_") and array.ndim == 3:
            arrays[key] = array[..., None]
        elif not key.startswith("x_") and array.dtype.kind in "iu":
            arrays[key] = array.astype(np.int64)
    return arrays


_KEYS = ("x_train", "y_train", "x_test", "y_test", "group_train", "group_test")

FORMATS: dict[str, Callable[[Path, Card], Arrays]] = {
    "cifar100_binary": _cifar100_binary,
    "cifar10_binary": _cifar10_binary,
    "cifar10_png": _cifar10_png,
    "digits": _digits,
    "idx": partial(_idx, transposed=False),
    "idx_transposed": partial(_idx, transposed=True),
    "isic": decode_isic,
    "npz": _npz,
    "stl10_binary": _stl10_binary,
    "text": _text,
}
