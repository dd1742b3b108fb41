"""From raw files to ``<name>.npz`` and its card ``<name>.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedlogit.data.cards import Card, card
from fedlogit.data.content import canonical, check
from fedlogit.data.decode import Arrays, decode
from fedlogit.data.download import read_mark
from fedlogit.data.isic import decode_isic
from fedlogit.data.raw import Raw
from fedlogit.errors import DataError
from fedlogit.files import load_npz, remove_leftovers_of, save_npz, write_json
from fedlogit.locks import held

__all__ = ["describe", "lacking_classes", "prepare"]

_PIXELS = 2**22  # summed at once, in double precision: 34 MB a channel, and as much for squares
_SPLITS = {"train": "training"}
_NAMED = 10  # classes, of those without samples
_IMAGES = 4096  # summed at once at most: other parts of small images give other last bits


def prepare(name: str, raw: Path, out: Path) -> dict[str, Any]:
    """Decode raw files, check them, and write ``out/<name>.npz`` and ``out/<name>.json``.

    An ``.npz`` that holds this content already is left as it is.

    Args:
        name: A name from `DATASETS`.
        raw: A folder that `download` filled.
        out: The folder of prepared data sets.

    Returns:
        The card's content.

    Raises:
        DataError: if the raw files are incomplete, damaged, or not this data set.
    """
    about, mark = card(name), read_mark(raw, name)
    if mark.format == "isic":
        arrays = decode_isic(Raw(raw), Path(mark.source), about)
    else:
        arrays = decode(mark.format, Raw(raw), about)
    digest = check(about, arrays, str(raw))
    if about.kind == "images":
        arrays = canonical(about, _typed(arrays))
    description = describe(about, arrays, digest) | {"source": mark.source}
    path, written = out / f"{name}.npz", out / f"{name}.json"
    with held(out / f".{name}.lock", f"waiting for another preparation of {name}"):
        remove_leftovers_of(path)
        remove_leftovers_of(written)
        if not _is_there(about, path, digest):
            # Every run reads it, and photographs hardly shrink: CIFAR-10 by 8 %.
            save_npz(path, arrays, compressed=False)
        write_json(written, description)
    return description


def _typed(arrays: Arrays) -> Arrays:
    """Return contiguous arrays, labels and groups as int64."""
    return {
        k: np.ascontiguousarray(a if k[0] == "x" else a.astype(np.int64)) for k, a in arrays.items()
    }


def _is_there(about: Card, path: Path, digest: str) -> bool:
    try:
        return check(about, load_npz(path, about.limit), str(path)) == digest
    except DataError:
        return False


def describe(about: Card, arrays: Arrays, digest: str) -> dict[str, Any]:
    """Return a card as plain data: shapes, class counts, mean and deviation, digest, licence."""
    described: dict[str, Any] = {
        "name": about.name,
        "title": about.title,
        "licence": about.licence,
        "homepage": about.homepage,
        "note": about.note,
        "digest": digest,
        "arrays": {k: {"dtype": str(a.dtype), "shape": list(a.shape)} for k, a in arrays.items()},
    }
    if about.unpinned:
        described["content"] = about.unpinned
    if about.kind == "images":
        mean, std = _moments(arrays["x_train"])
        described["train_mean"], described["train_std"] = mean, std
        described["normalised_by"] = {"mean": list(about.mean), "std": list(about.std)}
    described["class_counts"] = {
        key.removeprefix("y_"): np.bincount(labels, minlength=about.classes).tolist()
        for key, labels in arrays.items()
        if key.startswith("y_")
    }
    return described


def lacking_classes(described: Mapping[str, Any]) -> str:
    """Return, of a card as plain data, which classes have no sample in which split, or ""."""
    parts = []
    for split, counts in described["class_counts"].items():
        lacking = [str(label) for label, count in enumerate(counts) if not count]
        if lacking:
            others = len(lacking) - _NAMED
            more = f" and {others} others" if others > 0 else ""
            classes = f"class{'es' * (len(lacking) > 1)} {', '.join(lacking[:_NAMED])}{more}"
            parts.append(f"no {_SPLITS.get(split, split)} sample of {classes}")
    return "; ".join(parts)


def _moments(images: np.ndarray) -> tuple[list[float], list[float]]:
    """Return mean and standard deviation per channel of pixels scaled to [0, 1]."""
    channels = images.shape[-1]
    total, squares = np.zeros(channels), np.zeros(channels)
    size = _at_once(images.shape)
    for start in range(0, len(images), size):
        part = images[start : start + size].reshape(-1, channels).astype(np.float64) / 255
        total += part.sum(axis=0)
        squares += (part**2).sum(axis=0)
    count = images.size / channels
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0))
    return mean.round(6).tolist(), std.round(6).tolist()


def _at_once(shape: tuple[int, ...]) -> int:
    """Return how many images of a shape (images, height, width, channels) are summed at once."""
    return max(1, min(_IMAGES, _PIXELS // math.prod(shape[1:-1])))
