"""Prepared data sets: one ``.npz`` of plain arrays and a card beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from fedlogit.data.cards import Card, card
from fedlogit.errors import DataError
from fedlogit.files import array_digest, load_npz

__all__ = ["Dataset", "check", "content_digest", "digits", "load"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled image data set in memory.

    Attributes:
        name: Its name in specs.
        title: Its name in tables.
        classes: Number of classes.
        mean: Per channel, of pixels scaled to [0, 1].
        std: The same.
        x_train: uint8 (n, height, width, channels).
        y_train: int64 (n,).
        x_test: As `x_train`.
        y_test: As `y_train`.
        group_train: Centre of each training sample, int64 (n,), where the data come from several.
        digest: SHA-256 of the content.
        note: Why results with it are not results with what it stands in for, or "".
    """

    name: str
    title: str
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    group_train: np.ndarray | None
    digest: str
    note: str


def load(name: str, folder: Path) -> Dataset:
    """Return a prepared data set; scikit-learn's digits need no preparation.

    Args:
        name: A name from `DATASETS`.
        folder: Where ``<name>.npz`` lies.

    Raises:
        FedlogitError: if the name is unknown.
        DataError: if the file is missing, damaged, or not this data set.
    """
    about = card(name)
    if about.kind != "images" or not about.classes:
        raise DataError(f"dataset {name} has no labelled images to train on")
    path = Path(folder) / f"{name}.npz"
    if name == "digits":
        arrays = digits()
    elif path.exists():
        arrays = load_npz(path)
    else:
        raise DataError(
            f"{path} does not exist; make it with scripts/download.py and scripts/prepare.py {name}"
        )
    digest = check(about, arrays, str(path))
    return Dataset(
        name=name,
        title=about.title,
        classes=about.classes,
        mean=about.mean,
        std=about.std,
        x_train=arrays["x_train"],
        y_train=arrays["y_train"].astype(np.int64),
        x_test=arrays["x_test"],
        y_test=arrays["y_test"].astype(np.int64),
        group_train=arrays.get("group_train"),
        digest=digest,
        note=about.note,
    )


def check(about: Card, arrays: Mapping[str, np.ndarray], where: str) -> str:
    """Check that arrays are the data set of a card, and return their content's digest.

    Raises:
        DataError: naming what is wrong: a missing array, a type, a shape, a label, the content.
    """
    if about.kind == "text":
        return _check_text(about, arrays, where)
    splits = [("train", about.train)] + ([("test", about.test)] if about.test else [])
    for split, n in splits:
        _check_images(about, arrays.get(f"x_{split}"), n, f"{where}: x_{split}")
        if about.classes:
            _check_labels(about, arrays.get(f"y_{split}"), n, f"{where}: y_{split}")
    digest = content_digest(arrays, ordered=about.ordered)
    if about.digest and digest != about.digest:
        raise DataError(
            f"{where} is not {about.title}: its content's digest is {digest[:12]}…, "
            f"not {about.digest[:12]}…"
        )
    return digest


def _check_images(about: Card, x: np.ndarray | None, n: int, where: str) -> None:
    if x is None:
        raise DataError(f"{where} is missing")
    if x.dtype != np.uint8 or x.shape != (n, *about.shape):
        raise DataError(
            f"{where} is {x.dtype} {x.shape}; {about.title} has uint8 {(n, *about.shape)}"
        )


def _check_labels(about: Card, y: np.ndarray | None, n: int, where: str) -> None:
    if y is None:
        raise DataError(f"{where} is missing")
    if y.dtype.kind not in "iu" or y.shape != (n,):
        raise DataError(f"{where} is {y.dtype} {y.shape}; {about.title} has integers {(n,)}")
    if y.min() < 0 or y.max() >= about.classes:
        raise DataError(f"{where} has label {y.max()}; {about.title} has {about.classes} classes")


def _check_text(about: Card, arrays: Mapping[str, np.ndarray], where: str) -> str:
    for split in ("train", "valid", "test"):
        text = arrays.get(split)
        if text is None or text.dtype != np.uint8 or text.ndim != 1 or not len(text):
            raise DataError(f"{where}: {split} must be a non-empty row of uint8, the text's bytes")
    digest = array_digest(*(arrays[split] for split in ("train", "valid", "test")))
    if about.digest and digest != about.digest:
        raise DataError(f"{where} is not {about.title}: its content's digest differs")
    return digest


def content_digest(arrays: Mapping[str, np.ndarray], *, ordered: bool = True) -> str:
    """Return a SHA-256 of images and labels that does not depend on how they were stored.

    Args:
        arrays: ``x_train``, ``y_train`` and so on; labels of any integer type.
        ordered: If false, rows may come in any order: the digest is over the sorted digests of
            each split's rows.
    """
    digest = hashlib.sha256()
    for split in ("train", "test"):
        x, y = arrays.get(f"x_{split}"), arrays.get(f"y_{split}")
        if x is None or not len(x):
            continue
        labels = np.zeros(len(x), np.int64) if y is None else y.astype(np.int64)
        if ordered:
            digest.update(array_digest(x, labels).encode())
        else:
            digest.update("".join(sorted(map(_row_digest, x, labels))).encode())
    return digest.hexdigest()


def _row_digest(image: np.ndarray, label: np.int64) -> str:
    return hashlib.sha256(image.tobytes() + int(label).to_bytes(8, "little")).hexdigest()


def digits() -> dict[str, np.ndarray]:
    """Return scikit-learn's digits: 8 x 8 pixels in 0..16, scaled by 15 to uint8.

    Every fifth sample of each class is a test sample: 1,437 to train on, 360 to test.
    """
    raw = load_digits()
    images = (raw.images * 15).astype(np.uint8)[..., None]
    labels = raw.target.astype(np.int64)
    held = np.zeros(len(labels), dtype=bool)
    for c in range(10):
        held[np.flatnonzero(labels == c)[4::5]] = True
    extra = 360 - int(held.sum())
    held[np.flatnonzero(~held)[:extra]] = True
    return {
        "x_train": images[~held], "y_train": labels[~held],
        "x_test": images[held], "y_test": labels[held],
    }  # fmt: skip
