"""Prepared data sets in memory: one ``.npz`` of plain arrays each, checked whenever it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedlogit.data.cards import card
from fedlogit.data.content import canonical, check, content_digest
from fedlogit.errors import DataError
from fedlogit.files import load_npz

__all__ = ["Dataset", "canonical", "check", "content_digest", "digits", "load", "load_arrays"]


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
    arrays, digest = load_arrays(name, folder)
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


def load_arrays(name: str, folder: Path) -> tuple[dict[str, np.ndarray], str]:
    """Return the checked arrays of any prepared data set, and their content's digest.

    Unlabelled images are ``x_train``; texts are the uint8 rows ``train``, ``valid``, ``test``.

    Raises:
        FedlogitError: if the name is unknown.
        DataError: if the file is missing, damaged, or not this data set.
    """
    about = card(name)
    path = Path(folder) / f"{name}.npz"
    if path.exists():
        arrays = load_npz(path)
    elif name == "digits":  # embedded: it need not be prepared
        arrays = digits()
    else:
        raise DataError(
            f"{path} does not exist; make it with scripts/download.py {name} and "
            f"scripts/prepare.py {name}"
        )
    digest = check(about, arrays, str(path))
    return canonical(about, arrays), digest


def digits() -> dict[str, np.ndarray]:
    """Return scikit-learn's digits: 8 x 8 pixels in 0..16, times 15, as uint8.

    Sorted by class, every fifth sample is for testing: 1,437 to train on and 360 to test, and
    each class has its share in both. Within a split the original order stays.
    """
    from sklearn.datasets import load_digits  # takes a second to import

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
