"""Data that come with a locked package: they need no network, and need not be prepared."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fedlogit.errors import DataError

__all__ = ["EMBEDDED", "digits", "docstrings", "photos"]

_PACKAGES = (
    "cluster",
    "decomposition",
    "ensemble",
    "linear_model",
)  # a megabyte, in a second or two
_SHORT = 20  # characters


def digits() -> dict[str, np.ndarray]:
    """Return scikit-learn's digits: 8 x 8 pixels in 0..16, times 15, as uint8.

    Sorted by class, every fifth sample is for testing: 1,437 to train on and 360 to test, and
    each class has its share in both. Within a split the original order stays.
    """
    # As `load_digits` reads it.
    table = np.loadtxt(_scikit_learn("datasets/data/digits.csv.gz"), np.int64, delimiter=",")
    images = (table[:, :-1] * 15).astype(np.uint8).reshape(-1, 8, 8, 1)
    labels = table[:, -1]
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


def docstrings() -> dict[str, np.ndarray]:
    """Return docstrings of scikit-learn as a text: the bytes of `train`, `valid` and `test`.

    Files are in the order of their names, docstrings in the order of their lines. Many parameters
    are described alike in many places, so a line is kept once, unless it is short. Of every ten
    docstrings, one is for validation and one for testing.
    """
    packages = map(_scikit_learn, _PACKAGES)
    files = (file for package in packages for file in sorted(package.glob("*.py")))
    texts = list(_once(text for file in files for text in _docstrings(file)))
    parts = {
        "train": [text for i, text in enumerate(texts) if i % 10 < 8],
        "valid": texts[8::10],
        "test": texts[9::10],
    }
    return {
        split: np.frombuffer("".join(f"{t}\n\n" for t in part).encode(), np.uint8)
        for split, part in parts.items()
    }


def _scikit_learn(path: str) -> Path:
    """Return where a file or folder of scikit-learn is, whose import takes a second or two."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise DataError("scikit-learn, with which this data set comes, is not installed")
    there = Path(found.origin).parent / path
    if not there.exists():
        raise DataError(f"{there} does not exist: another scikit-learn than the locked one?")
    return there


def _docstrings(file: Path) -> Iterator[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [n for n in ast.walk(ast.parse(file.read_bytes())) if isinstance(n, documented)]
    for node in sorted(nodes, key=lambda n: getattr(n, "lineno", 0)):
        if text := ast.get_docstring(node):
            yield text


def _once(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts without the lines, short ones excepted, that came before."""
    seen: set[str] = set()
    for text in texts:
        kept = []
        for line in text.splitlines():
            plain = " ".join(line.split())
            if len(plain) < _SHORT or plain not in seen:
                kept.append(line)
            seen.add(plain)
        yield "\n".join(kept)


EMBEDDED: dict[str, Callable[[], dict[str, np.ndarray]]] = {
    "digits": digits,
    "photos8": photos,
    "sklearn_docs": docstrings,
}
