"""Prepared data sets in memory: one ``.npz`` of plain arrays each, checked whenever it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedlogit.data.cards import card
from fedlogit.data.content import canonical, check, content_digest
from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import load_npz

__all__ = [
    "EMBEDDED",
    "UNKNOWN",
    "Dataset",
    "canonical",
    "check",
    "check_probes",
    "content_digest",
    "digits",
    "load",
    "load_arrays",
    "photos",
    "with_probes",
]

UNKNOWN = -1
"""The label of a sample whose label nobody knows."""


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
        y_train: int64 (n,); -1 where nobody knows.
        x_test: As `x_train`.
        y_test: As `y_train`.
        group_train: Centre of each training sample, int64 (n,), where the data come from several.
        digest: SHA-256 of the content.
        note: Why results with it are not results with what it stands in for, or "".
        probes_digest: SHA-256 of the content of the data set joined on for its images, or "".
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
    probes_digest: str = ""


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


def with_probes(dataset: Dataset, name: str, folder: Path) -> Dataset:
    """Return a data set with another one's training images after its own, their labels unknown.

    They are normalised as the data set's own.

    Raises:
        FedlogitError: if the name is unknown, or its images have another shape.
        DataError: if its file is missing, damaged, or not that data set.
    """
    check_probes(dataset.name, name)
    arrays, digest = load_arrays(name, folder)
    probes, notes = arrays["x_train"], [dataset.note]
    if card(name).note:
        notes.append(f"public set: {card(name).note}")
    return replace(
        dataset,
        x_train=np.concatenate([dataset.x_train, probes]),
        y_train=np.concatenate([dataset.y_train, np.full(len(probes), UNKNOWN)]),
        note="; ".join(filter(None, notes)),
        probes_digest=digest,
    )


def check_probes(name: str, other: str) -> None:
    """Refuse a data set whose images cannot be asked of models of data set `name`.

    Raises:
        FedlogitError: if it is unknown, the same, not of images, or of images of another shape.
    """
    own, about = card(name), card(other)
    if other == name:
        raise FedlogitError(
            f"public.dataset = {other!r}: is the private data set too; leave it out to take public"
            " samples from that"
        )
    if about.kind != "images" or about.shape != own.shape:
        found = "x".join(map(str, about.shape)) or "text"
        wanted = "x".join(map(str, own.shape))
        raise FedlogitError(
            f"public.dataset = {other!r}: its samples are {found}, those of {name} {wanted}"
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
    elif name in EMBEDDED:  # it need not be prepared
        arrays = EMBEDDED[name]()
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


def photos() -> dict[str, np.ndarray]:
    """Return scikit-learn's two sample photographs as unlabelled grey tiles of 8 x 8 pixels.

    They are to digits what another data set's images are to CIFAR-10: probes from elsewhere.
    """
    from sklearn.datasets import load_sample_images  # takes a second to import

    tiles = []
    for image in load_sample_images().images:
        grey = image.astype(np.int64) @ np.array([299, 587, 114]) // 1000
        rows, columns = (side // 8 for side in grey.shape)
        cut = grey[: rows * 8, : columns * 8].reshape(rows, 8, columns, 8)
        tiles.append(cut.transpose(0, 2, 1, 3).reshape(-1, 8, 8, 1))
    return {"x_train": np.concatenate(tiles).astype(np.uint8)}


EMBEDDED: dict[str, Callable[[], dict[str, np.ndarray]]] = {"digits": digits, "photos8": photos}
