"""Fed-ISIC2019: 23,247 dermoscopic images of 6 centres, 8 classes (FLamby; CELM §5).

The images must be got by hand, because their licence has to be accepted. A folder holds FLamby's
table ``train_test_split`` (columns ``image``, ``target``, ``center``, ``fold``, …) and the images
as ``<image>.jpg``, either FLamby's own output or the challenge's originals:

- ``ISIC_2019_Training_Input_preprocessed/``: taken as they are;
- ``ISIC_2019_Training_Input/``: resized so that the shorter side has 224 pixels (bilinear), then
  given colour constancy (shades of grey, 6-norm), as FLamby's ``resize_images.py`` does. Where a
  channel exceeds 255 it is clipped; FLamby's code lets it overflow.

Both are then cropped to the central 224 x 224, so that all have one shape.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from tqdm import tqdm

from fedlogit.data.cards import Card
from fedlogit.data.raw import Raw
from fedlogit.errors import DataError

__all__ = [
    "COUNTS",
    "TABLE",
    "Row",
    "colour_constancy",
    "decode_isic",
    "read_image",
    "read_table",
    "survey",
]

TABLE = "train_test_split"
COUNTS = Path(__file__).resolve().parents[2] / "data" / "fed_isic2019_counts.csv"
_CLASSES = ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC")
_TABLE_LIMIT = 16 << 20  # bytes at most; FLamby's table of 23,247 rows has less than 3e6
_READY, _ORIGINAL = "ISIC_2019_Training_Input_preprocessed", "ISIC_2019_Training_Input"
_IMAGE = re.compile(r"ISIC_\d+(_downsampled)?")


@dataclass(frozen=True)
class Row:
    """One image of the table."""

    image: str
    target: int
    center: int
    fold: str


def read_table(content: bytes) -> list[Row]:
    """Return the rows of FLamby's table.

    Raises:
        DataError: naming the first row that is wrong.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(content.decode())))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{TABLE} is not a CSV table: {error}") from None
    return [_row(row, number) for number, row in enumerate(rows, 2)]


def _row(row: dict[str, str], number: int) -> Row:
    try:
        found = Row(row["image"], int(row["target"]), int(row["center"]), row["fold"])
    except KeyError as error:
        raise DataError(f"{TABLE} has no column {error}") from None
    except (TypeError, ValueError):
        raise DataError(f"{TABLE}, line {number}: target and center must be integers") from None
    # A name becomes part of a path.
    if not _IMAGE.fullmatch(found.image):
        raise DataError(
            f"{TABLE}, line {number}: {found.image!r} is not an image like ISIC_0000000"
        )
    if found.fold not in ("train", "test") or not 0 <= found.target < len(_CLASSES):
        raise DataError(
            f"{TABLE}, line {number}: fold {found.fold!r} must be train or test, "
            f"target {found.target} must be in 0..{len(_CLASSES) - 1}"
        )
    return found


def survey(raw: Raw, folder: Path, counts: Path = COUNTS) -> tuple[list[Row], Path]:
    """Check the table against the published counts, and that every image is there.

    Args:
        raw: Holds `TABLE`.
        folder: Holds the images.
        counts: Images per fold, centre and class.

    Returns:
        The rows, and the folder of images to read.

    Raises:
        DataError: naming the first count or image that is wrong.
    """
    rows = read_table(raw.read([TABLE], _TABLE_LIMIT)[TABLE])
    _check_counts(rows, counts)
    images = next((folder / n for n in (_READY, _ORIGINAL) if (folder / n).is_dir()), None)
    if images is None:
        raise DataError(f"{folder} has neither {_READY}/ nor {_ORIGINAL}/")
    there = {path.stem for path in images.glob("*.jpg")}
    missing = [row.image for row in rows if row.image not in there]
    if missing:
        raise DataError(
            f"{images} lacks {len(missing)} of {len(rows)} images, such as {missing[0]}.jpg"
        )
    return rows, images


def _check_counts(rows: list[Row], path: Path) -> None:
    found = Counter((row.fold, row.center, row.target) for row in rows)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            for target, name in enumerate(_CLASSES):
                key = (line["fold"], int(line["center"]), target)
                if found.pop(key, 0) != int(line[name]):
                    raise DataError(
                        f"{TABLE} is not Fed-ISIC2019's: another number of {name} than "
                        f"{line[name]} in {key[0]} of centre {key[1]}"
                    )
    if found:
        fold, center, _ = next(iter(found))
        raise DataError(f"{TABLE} is not Fed-ISIC2019's: it has {fold} images of centre {center}")


def decode_isic(
    raw: Raw, folder: Path, about: Card, counts: Path = COUNTS
) -> dict[str, np.ndarray]:
    """Return ``x_``, ``y_`` and ``group_`` (centre) arrays, rows in the table's order.

    Raises:
        DataError: as `survey`, or if an image is damaged or smaller than the card's shape.
    """
    rows, images = survey(raw, folder, counts)
    arrays: dict[str, np.ndarray] = {}
    for fold in ("train", "test"):
        part = [row for row in rows if row.fold == fold]
        arrays[f"x_{fold}"] = _read_images([images / f"{row.image}.jpg" for row in part], about)
        arrays[f"y_{fold}"] = np.array([row.target for row in part], dtype=np.int64)
        arrays[f"group_{fold}"] = np.array([row.center for row in part], dtype=np.int64)
    return arrays


def _read_images(paths: list[Path], about: Card) -> np.ndarray:
    pixels = np.empty((len(paths), *about.shape), np.uint8)

    def fill(i: int) -> None:
        pixels[i] = read_image(paths[i], about.shape[0])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in tqdm(pool.map(fill, range(len(paths))), total=len(paths), disable=None):
            pass
    return pixels


def read_image(path: Path, side: int) -> np.ndarray:
    """Return the central uint8 (side, side, 3) of an image, preprocessed if it is an original."""
    try:
        with Image.open(path, formats=["JPEG"]) as file:
            image = file.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    if min(image.size) < side:  # enlarged, a narrow one would fill the memory
        width, height = image.size
        raise DataError(
            f"{path} has {width} x {height} pixels; at least {side} x {side} are needed"
        )
    if path.parent.name == _ORIGINAL:
        pixels = colour_constancy(np.asarray(_shrink(image, side)))
    else:
        pixels = np.asarray(image)
    height, width = pixels.shape[:2]
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]


def _shrink(image: Image.Image, side: int) -> Image.Image:
    ratio = side / min(image.size)
    width, height = (max(side, int(length * ratio)) for length in image.size)
    return image.resize((width, height), Image.Resampling.BILINEAR)


def colour_constancy(pixels: np.ndarray, power: int = 6) -> np.ndarray:
    """Scale each channel so that the estimated light is grey (shades of grey).

    Args:
        pixels: uint8 (height, width, 3).
        power: Norm of the estimate of a channel's light over all pixels.
    """
    light = np.mean(pixels.astype(np.float64) ** power, axis=(0, 1)) ** (1 / power)
    if not light.all():
        return pixels  # a channel without any light cannot be scaled
    gain = np.linalg.norm(light) / (light * np.sqrt(3))
    return np.clip(pixels * gain, 0, 255).astype(np.uint8)
