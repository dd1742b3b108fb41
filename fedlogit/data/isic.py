"""Fed-ISIC2019: dermoscopic images of six centres, split and preprocessed as owkin/FLamby does.

FLamby shrinks each image so that its shorter side is 224 (bilinear), then balances its colours
(Shades of Gray with a norm of 6: Finlayson and Trezzi 2004); training crops 200 x 200. Here the
central 224 x 224 square is kept of the shrunk image, so that all images share a shape and a
random crop still has room. Two things differ from FLamby, which clips neither bright pixels
(they wrap around) nor the longer side: ours saturate, and random crops cannot reach beyond the
square. The central 200 x 200 crop of the tests is the same region.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from tqdm import tqdm

from fedlogit.data.cards import Card
from fedlogit.errors import DataError

__all__ = ["check_counts", "decode_isic", "shades_of_gray", "square"]

CLASSES = ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC")
_ZIP_FOLDER = "ISIC_2019_Training_Input"
_NORM = 6
_Reader = Callable[[str], bytes]


def decode_isic(folder: Path, about: Card) -> dict[str, np.ndarray]:
    """Read ``train_test_split`` and the images it lists, from ``images/`` or ``images.zip``.

    Returns:
        ``x_*`` uint8 (n, side, side, 3), ``y_*`` and ``group_*`` (the centre) int64, in the
        order of the list.

    Raises:
        DataError: naming the line or the image that is missing or wrong.
    """
    rows = _rows(folder / "train_test_split")
    arrays: dict[str, np.ndarray] = {}
    with _images(folder) as read:
        for split in ("train", "test"):
            chosen = [(name, target, centre) for name, target, centre, s in rows if s == split]
            x = np.empty((len(chosen), *about.shape), np.uint8)
            for i, (name, _, _) in enumerate(tqdm(chosen, desc=split, disable=None)):
                x[i] = _image(read, name, about.shape[0])
            arrays[f"x_{split}"] = x
            arrays[f"y_{split}"] = np.array([target for _, target, _ in chosen], np.int64)
            arrays[f"group_{split}"] = np.array([centre for _, _, centre in chosen], np.int64)
    return arrays


def _rows(path: Path) -> list[tuple[str, int, int, str]]:
    """Return (image, target, centre, split) of each line of FLamby's list."""
    rows = []
    with path.open(newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                name, split = row["image"], row["fold"]
                target, centre = int(row["target"]), int(row["center"])
            except (KeyError, TypeError, ValueError):
                raise DataError(
                    f"{path.name}, line {line}: needs the columns image, target, center, fold"
                ) from None
            if split not in ("train", "test") or not re.fullmatch(r"\w+", name):
                raise DataError(f"{path.name}, line {line}: bad image {name!r} or fold {split!r}")
            rows.append((name, target, centre, split))
    return rows


@contextmanager
def _images(folder: Path) -> Iterator[_Reader]:
    """Yield a function from an image's name to the bytes of its file."""
    if (folder / "images").is_dir():
        yield lambda name: (folder / "images" / f"{name}.jpg").read_bytes()
        return
    try:
        with zipfile.ZipFile(folder / "images.zip") as archive:
            yield lambda name: archive.read(f"{_ZIP_FOLDER}/{name}.jpg")
    except zipfile.BadZipFile as error:
        raise DataError(f"images.zip is damaged: {error}") from None


def _image(read: _Reader, name: str, side: int) -> np.ndarray:
    try:
        with Image.open(io.BytesIO(read(name)), formats=["JPEG"]) as image:
            return square(image.convert("RGB"), side)
    except (OSError, KeyError, SyntaxError) as error:
        raise DataError(f"image {name}.jpg is missing or damaged: {error}") from None


def square(image: Image.Image, side: int) -> np.ndarray:
    """Shrink to a shorter side of `side`, balance the colours, keep the central square.

    Returns:
        uint8 (side, side, 3).
    """
    ratio = side / min(image.size)
    size = (max(side, int(image.width * ratio)), max(side, int(image.height * ratio)))
    pixels = shades_of_gray(np.asarray(image.resize(size, Image.Resampling.BILINEAR)))
    top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
    return pixels[top : top + side, left : left + side]


def shades_of_gray(pixels: np.ndarray) -> np.ndarray:
    """Scale the channels so that the light's colour, a norm over all pixels, becomes grey.

    Args:
        pixels: uint8 (height, width, 3).
    """
    light = np.mean(pixels.astype(np.float64) ** _NORM, axis=(0, 1)) ** (1 / _NORM)
    if not light.all():  # a channel without light has no colour to correct
        return pixels
    gain = np.linalg.norm(light) / (light * np.sqrt(3))
    return np.clip(pixels * gain, 0, 255).astype(np.uint8)


def check_counts(arrays: dict[str, np.ndarray], path: Path) -> None:
    """Compare the images of each split, centre and class with those of a CSV.

    Args:
        arrays: As `decode_isic` returns them.
        path: A file with the columns ``fold, center, MEL, NV, BCC, AK, BKL, DF, VASC, SCC``.

    Raises:
        DataError: naming the first cell that differs.
    """
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            split, centre = row["fold"], int(row["center"])
            labels = arrays[f"y_{split}"][arrays[f"group_{split}"] == centre]
            found = Counter(labels.tolist())
            for target, name in enumerate(CLASSES):
                if found[target] != int(row[name]):
                    raise DataError(
                        f"{split} split, centre {centre}, class {name}: "
                        f"{found[target]} images, not {row[name]}"
                    )
