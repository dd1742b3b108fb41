"""What decoded data must be: types, shapes, labels, class counts, and a digest of the content.

Digests are of the decoded arrays, so any container will do. Where mirrors differ in the order of
rows (`Card.ordered` is false), the digest is over the sorted digests of rows, and `canonical`
puts the rows into that order, so that an index means the same image whichever source served.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from fedlogit.data.cards import Card
from fedlogit.errors import DataError
from fedlogit.files import array_digest

__all__ = ["TEXTS", "canonical", "check", "content_digest", "of_card"]

Arrays = Mapping[str, np.ndarray]
TEXTS = ("train", "valid", "test")


def of_card(about: Card, arrays: Arrays) -> dict[str, np.ndarray]:
    """Return the arrays that the data set of a card has; a file may hold others besides."""
    if about.kind == "text":
        return {key: array for key, array in arrays.items() if key in TEXTS}
    kinds = {"x": True, "y": about.classes, "group": about.groups}
    keys = {f"{kind}_{split}" for kind, has in kinds.items() if has for split, _ in about.splits()}
    return {key: array for key, array in arrays.items() if key in keys}


def check(about: Card, arrays: Arrays, where: str) -> str:
    """Check that arrays are the data set of a card, and return their content's digest.

    Args:
        about: What they must be.
        arrays: ``x_train``, ``y_train``, … or the bytes of ``train``, ``valid``, ``test``.
            Others are passed over.
        where: What errors call them.

    Raises:
        DataError: naming what is wrong: a missing array, a type, a shape, a label, the content.
    """
    arrays = of_card(about, arrays)
    if about.kind == "text":
        _check_text(about, arrays, where)
    else:
        for split, n in about.splits():
            _check_split(about, arrays, split, n, where)
    digest = content_digest(arrays, ordered=about.ordered)
    if about.digest and digest != about.digest:
        raise DataError(
            f"{where} is not {about.title}: shapes fit, but the content's digest is "
            f"{digest[:12]}…, not {about.digest[:12]}… (flipped bytes, or labels that moved)"
        )
    return digest


def _check_split(about: Card, arrays: Arrays, split: str, n: int, where: str) -> None:
    x = _get(arrays, f"x_{split}", where)
    if x.dtype != np.uint8 or x.shape != (n, *about.shape):
        right = f"uint8 {(n, *about.shape)}"
        raise DataError(f"{where}: x_{split} is {x.dtype} {x.shape}; {about.title} has {right}")
    if about.classes:
        _check_integers(about, arrays, f"y_{split}", n, about.classes, where)
    if about.groups:
        _check_integers(about, arrays, f"group_{split}", n, about.groups, where)
    if about.balanced:
        counts = np.bincount(arrays[f"y_{split}"], minlength=about.classes)
        odd = np.flatnonzero(counts != n // about.classes)
        if len(odd):
            raise DataError(
                f"{where}: y_{split} has label {odd[0]} {counts[odd[0]]} times; "
                f"{about.title} has each {n // about.classes} times"
            )


def _check_integers(about: Card, arrays: Arrays, key: str, n: int, below: int, where: str) -> None:
    y = _get(arrays, key, where)
    if y.dtype.kind not in "iu" or y.shape != (n,):
        raise DataError(f"{where}: {key} is {y.dtype} {y.shape}; {about.title} has integers {(n,)}")
    if y.min() < 0 or y.max() >= below:
        value = y.min() if y.min() < 0 else y.max()
        raise DataError(f"{where}: {key} has {value}; {about.title} has 0 to {below - 1}")


def _check_text(about: Card, arrays: Arrays, where: str) -> None:
    for split in TEXTS:
        text = _get(arrays, split, where)
        if text.dtype != np.uint8 or text.ndim != 1 or not len(text):
            raise DataError(f"{where}: {split} must be a non-empty row of uint8, the text's bytes")
    words = arrays["test"].tobytes().split()
    tokenised = words.count(b"<unk>") > len(words) / 1000
    if tokenised != about.tokenised:
        found = "tokenised (it has <unk>)" if tokenised else "not tokenised (it has no <unk>)"
        raise DataError(f"{where} is not {about.title}: the text is {found}")


def _get(arrays: Arrays, key: str, where: str) -> np.ndarray:
    if key not in arrays:
        raise DataError(f"{where}: {key} is missing")
    return arrays[key]


def content_digest(arrays: Arrays, *, ordered: bool = True) -> str:
    """Return a SHA-256 of the content that does not depend on how it was stored.

    Args:
        arrays: Images, labels and groups, or texts, and nothing else; integers of any width.
        ordered: If false, the rows of a split may come in any order.
    """
    if "train" in arrays:
        return array_digest(*(arrays[split] for split in TEXTS))
    digest = hashlib.sha256()
    for split in ("train", "test"):
        if f"x_{split}" not in arrays:
            continue
        x, columns = arrays[f"x_{split}"], _columns(arrays, split)
        if ordered:
            digest.update(array_digest(x, *columns).encode())
        else:
            digest.update("".join(sorted(_row_digests(x, columns))).encode())
    return digest.hexdigest()


def canonical(about: Card, arrays: Arrays) -> dict[str, np.ndarray]:
    """Return the arrays with the rows in an order that does not depend on the source."""
    if about.ordered:
        return dict(arrays)
    sorted_arrays = {}
    for split, _ in about.splits():
        rows = _row_digests(arrays[f"x_{split}"], _columns(arrays, split))
        order = np.argsort(np.array(rows), kind="stable")
        for key in (f"x_{split}", f"y_{split}", f"group_{split}"):
            if key in arrays:
                sorted_arrays[key] = arrays[key][order]
    return sorted_arrays


def _columns(arrays: Arrays, split: str) -> list[np.ndarray]:
    """Return labels (zeros if there are none) and, where they exist, groups."""
    labels = arrays.get(f"y_{split}", np.zeros(len(arrays[f"x_{split}"])))
    groups = [arrays[key] for key in (f"group_{split}",) if key in arrays]
    return [column.astype(np.int64) for column in (labels, *groups)]


def _row_digests(x: np.ndarray, columns: list[np.ndarray]) -> list[str]:
    rows = np.stack(columns, axis=1).astype("<i8")
    return [
        hashlib.sha256(image.tobytes() + row.tobytes()).hexdigest()
        for image, row in zip(x, rows, strict=True)
    ]
