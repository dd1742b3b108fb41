"""From raw files to plain arrays; nothing is unpickled, every length is checked.

A format is a function of this module's `FORMATS`, named in ``data/sources.yaml``.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from typing import IO

import numpy as np
from PIL import Image

from fedlogit.data.cards import Card
from fedlogit.data.content import of_card
from fedlogit.data.embedded import EMBEDDED
from fedlogit.data.raw import Raw
from fedlogit.errors import DataError, unknown
from fedlogit.files import load_npz

__all__ = ["FORMATS", "Arrays", "decode", "read_idx"]

Arrays = dict[str, np.ndarray]
_STL = (3, 96, 96)
_LABEL = 16  # characters of a label in JSON, with its comma and spaces


def decode(name: str, raw: Raw, about: Card) -> Arrays:
    """Return the arrays of a data set from its raw files, without what these may hold besides.

    Args:
        name: A key of `FORMATS`.
        raw: The raw files.
        about: What data set they should be.

    Raises:
        FedlogitError: if there is no such format.
        DataError: if a file is missing, damaged or not in this format.
    """
    if name not in FORMATS:
        raise unknown("format", name, FORMATS)
    return of_card(about, FORMATS[name](raw, about))


def read_idx(content: bytes, name: str, dims: int) -> np.ndarray:
    """Return the uint8 array of an idx file, the format of MNIST.

    Args:
        content: 00 00 08, the number of dimensions, each as a big-endian 32-bit size, the bytes.
        name: What errors call it.
        dims: Dimensions that it must have.

    Raises:
        DataError: if the header is another one, or the length is not what it says.
    """
    head = 4 + 4 * dims
    if len(content) < head or content[:4] != bytes((0, 0, 8, dims)):
        raise DataError(f"{name} is not an idx file of {dims}-dimensional bytes")
    shape = struct.unpack(f">{dims}I", content[4:head])
    expected = head + int(np.prod(shape, dtype=object))
    if len(content) != expected:
        raise DataError(f"{name} has {len(content)} bytes; its header says {expected}")
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)


def _idx(raw: Raw, about: Card, train: str = "train", test: str = "t10k") -> Arrays:
    names = {
        f"{axis}_{split}": f"{prefix}-{kind}-ubyte"
        for split, prefix in (("train", train), ("test", test))
        for axis, kind in (("x", "images-idx3"), ("y", "labels-idx1"))
    }
    content = raw.read(list(names.values()), about.limit)
    arrays = {key: read_idx(content[n], n, int(n[-7])) for key, n in names.items()}
    return {key: a[..., None] if key[0] == "x" else a for key, a in arrays.items()}


def _emnist(raw: Raw, about: Card) -> Arrays:
    """EMNIST's images are stored transposed; return them upright."""
    arrays = _idx(raw, about, "emnist-balanced-train", "emnist-balanced-test")
    return {k: a.transpose(0, 2, 1, 3) if k[0] == "x" else a for k, a in arrays.items()}


def _cifar10(raw: Raw, about: Card) -> Arrays:
    train = [f"data_batch_{i}.bin" for i in range(1, 6)]
    content = raw.read([*train, "test_batch.bin"], about.limit)
    parts = {"train": [content[n] for n in train], "test": [content["test_batch.bin"]]}
    return _rows(parts, labels=1)


def _cifar100(raw: Raw, about: Card) -> Arrays:
    content = raw.read(["train.bin", "test.bin"], about.limit)
    return _rows({"train": [content["train.bin"]], "test": [content["test.bin"]]}, labels=2)


def _rows(parts: dict[str, list[bytes]], labels: int) -> Arrays:
    """CIFAR's binary version: `labels` label bytes (the last is the class), 3 x 32 x 32 pixels."""
    width = labels + 3 * 32 * 32
    arrays: Arrays = {}
    for split, contents in parts.items():
        joined = b"".join(contents)
        if not joined or len(joined) % width:
            raise DataError(f"the {split} rows have {len(joined)} bytes, no multiple of {width}")
        rows = np.frombuffer(joined, np.uint8).reshape(-1, width)
        arrays[f"x_{split}"] = rows[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        arrays[f"y_{split}"] = rows[:, labels - 1]
    return arrays


def _cifar10_png(raw: Raw, about: Card) -> Arrays:
    """A PNG for each 10,000 images: a row per image, its 32 x 32 pixels one after another."""
    train = [f"data_batch_{i}.png" for i in range(1, 6)]
    labels = ["train_lables.json", "test_lables.json"]  # spelled so
    content = raw.read([*train, "test_batch.png"], about.limit)
    content |= raw.read(labels, (about.train + about.test) * _LABEL)
    return {
        "x_train": np.concatenate([_sheet(content[n], n, about.train) for n in train]),
        "y_train": _json_labels(content[labels[0]], labels[0]),
        "x_test": _sheet(content["test_batch.png"], "test_batch.png", about.test),
        "y_test": _json_labels(content[labels[1]], labels[1]),
    }


def _sheet(content: bytes, name: str, most: int) -> np.ndarray:
    """Return the images of a sheet, of which there must not be more than `most`."""
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            if image.size[0] != 1024 or image.mode != "RGB":
                raise DataError(f"{name} is {image.mode} {image.size}, not RGB rows of 1024 pixels")
            if image.size[1] > most:  # known from the header; pixels are unpacked below
                raise DataError(f"{name} has {image.size[1]} images; there are {most}")
            return np.asarray(image).reshape(-1, 32, 32, 3)
    except (OSError, SyntaxError, ValueError, IndexError, Image.DecompressionBombError) as error:
        raise error if isinstance(error, DataError) else DataError(f"{name}: {error}") from None


def _json_labels(content: bytes, name: str) -> np.ndarray:
    try:
        return np.array([int(label) for label in json.loads(content)], dtype=np.int64)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"{name} is not a JSON list of labels: {error}") from None


def _stl10(raw: Raw, about: Card) -> Arrays:
    """STL-10's unlabelled images, 96 x 96 stored column by column, resized to the card's size."""
    side = about.shape[0]
    found = raw.scan(["unlabeled_X.bin"], lambda s: _shrunk(s, side, about.train))
    return {"x_train": found["unlabeled_X.bin"]}


def _shrunk(stream: IO[bytes], side: int, most: int) -> np.ndarray:
    size = int(np.prod(_STL))
    images: list[np.ndarray] = []
    while content := stream.read(size):
        if len(content) != size:
            raise DataError(f"unlabeled_X.bin ends within image {len(images)}")
        if len(images) == most:
            raise DataError(f"unlabeled_X.bin has more than {most} images")
        pixels = np.frombuffer(content, np.uint8).reshape(_STL).transpose(2, 1, 0)
        image = Image.fromarray(np.ascontiguousarray(pixels))
        images.append(np.asarray(image.resize((side, side), Image.Resampling.BILINEAR)))
    return np.stack(images) if images else np.empty((0, side, side, 3), np.uint8)


def _npz(raw: Raw, about: Card) -> Arrays:
    """A mirror's plain arrays: images with or without a channel axis, ``x`` if unlabelled."""
    arrays = load_npz(raw.folder / f"{about.name}.npz", about.limit)
    if {"x", "x_train"} <= arrays.keys():
        raise DataError(
            f"{about.name}.npz has both x and x_train, which are the same; leave one out"
        )
    if "x" in arrays:
        arrays["x_train"] = arrays.pop("x")
    gray = len(about.shape) == 3 and about.shape[-1] == 1
    return {
        key: a[..., None] if gray and key.startswith("x_") and a.ndim == 3 else a
        for key, a in arrays.items()
    }


def _text(raw: Raw, about: Card) -> Arrays:
    return _texts(raw, about, {split: f"{split}.txt" for split in ("train", "valid", "test")})


def _wikitext(raw: Raw, about: Card) -> Arrays:
    return _texts(raw, about, {split: f"wiki.{split}.raw" for split in ("train", "valid", "test")})


def _texts(raw: Raw, about: Card, names: dict[str, str]) -> Arrays:
    content = raw.read(list(names.values()), about.limit)
    return {split: np.frombuffer(content[name], np.uint8) for split, name in names.items()}


def _embedded(raw: Raw, about: Card) -> Arrays:
    return EMBEDDED[about.name]()


FORMATS: dict[str, Callable[[Raw, Card], Arrays]] = {
    "idx": _idx,
    "emnist_idx": _emnist,
    "cifar10_binary": _cifar10,
    "cifar10_png": _cifar10_png,
    "cifar100_binary": _cifar100,
    "stl10_binary": _stl10,
    "wikitext_raw": _wikitext,
    "npz": _npz,
    "text": _text,
    "embedded": _embedded,
}
