"""Prepared data sets in memory: one ``.npz`` of plain arrays each, checked whenever it is read.

A sample has one class (an image), or a class at each of its positions (a text: the next token).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedlogit.data.cards import card
from fedlogit.data.content import canonical, check, of_card
from fedlogit.data.embedded import EMBEDDED
from fedlogit.data.tokens import load_tokens, sequences, token_files, tokenise
from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import load_npz
from fedlogit.spec import Text

__all__ = [
    "UNKNOWN",
    "Dataset",
    "check_probes",
    "load",
    "load_arrays",
    "preparing",
    "with_probes",
]

UNKNOWN = -1
"""The label of a sample whose label nobody knows."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled data set in memory.

    Attributes:
        name: Its name in specs.
        title: Its name in tables.
        classes: Number of classes; of a text, its vocabulary.
        mean: Per channel, of pixels scaled to [0, 1]; () for a text.
        std: The same.
        x_train: uint8 images (n, height, width, channels), or a text's tokens (n, T).
        y_train: int64 (n,), -1 where nobody knows; or the next tokens (n, T).
        x_test: As `x_train`.
        y_test: As `y_train`.
        group_train: Centre of each training sample, int64 (n,), where the data come from several.
        digest: SHA-256 of the content.
        note: Why results with it are not results with what it stands in for, or "".
        tokenizer: SHA-256 of the tokenizer that made the samples, or "".
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
    tokenizer: str = ""
    probes_digest: str = ""

    @property
    def strata(self) -> tuple[np.ndarray, int]:
        """What training samples are divided by: their classes, and how many there are.

        Samples that have a class at each position have none of their own: they are of one kind.
        """
        return _strata(self.y_train, self.classes)

    @property
    def test_strata(self) -> np.ndarray:
        """The same of the test samples, without how many there are."""
        return _strata(self.y_test, self.classes)[0]


def _strata(labels: np.ndarray, classes: int) -> tuple[np.ndarray, int]:
    return (labels, classes) if labels.ndim == 1 else (np.zeros(len(labels), np.int64), 1)


def load(name: str, folder: Path, text: Text | None = None) -> Dataset:
    """Return a prepared data set; one that comes with a library needs no preparation.

    Args:
        name: A name from `DATASETS`.
        folder: Where ``<name>.npz`` lies, and a text's tokens.
        text: How a text becomes samples.

    Raises:
        FedlogitError: if the name is unknown.
        DataError: if a file is missing, damaged, or not this data set.
    """
    about = card(name)
    if about.kind == "text":
        return _load_text(name, Path(folder), text)
    if not about.classes:
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


def _load_text(name: str, folder: Path, text: Text | None) -> Dataset:
    """Return a text as sequences of tokens; what is tested on is `text.evaluation_split`."""
    if text is None:
        raise FedlogitError(f"dataset {name} is a text; give text: {{vocabulary: n, length: n}}")
    about = card(name)
    arrays, digest = load_arrays(name, folder)
    made = any(path.exists() for path in token_files(folder, name, text.vocabulary))
    if name in EMBEDDED and not made:
        tokens = tokenise(arrays, text.vocabulary, name)
    else:
        tokens = load_tokens(name, folder, text.vocabulary, arrays)
    parts = {}
    for key, split in (("train", "train"), ("test", text.evaluation_split)):
        where = f"split {split} of {name}"
        parts[f"x_{key}"], y = sequences(tokens.splits[split], text.length, where)
        parts[f"y_{key}"] = y.astype(np.int64)
    return Dataset(
        name=name,
        title=about.title,
        classes=text.vocabulary,
        mean=(),
        std=(),
        x_train=parts["x_train"],
        y_train=parts["y_train"],
        x_test=parts["x_test"],
        y_test=parts["y_test"],
        group_train=None,
        digest=digest,
        note=about.note,
        tokenizer=tokens.digest,
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
    if own.kind != "images":
        raise FedlogitError(
            f"public.dataset = {other!r}: dataset {name} is a text, whose public samples are its"
            " own; leave it out"
        )
    if about.kind != "images" or about.shape != own.shape:
        found = "x".join(map(str, about.shape)) or "text"
        wanted = "x".join(map(str, own.shape))
        raise FedlogitError(
            f"public.dataset = {other!r}: its samples are {found}, those of {name} {wanted}"
        )


def preparing(name: str, folder: Path) -> str:
    """Return the commands that download a data set and prepare it into a folder, to be pasted."""
    return f"python -m fedlogit download {name} && python -m fedlogit prepare {name} --out {folder}"


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
        arrays = load_npz(path, about.limit)
    elif name in EMBEDDED:  # it need not be prepared
        arrays = EMBEDDED[name]()
    else:
        raise DataError(f"{path} does not exist; make it with {preparing(name, Path(folder))}")
    digest = check(about, arrays, str(path))
    return canonical(about, of_card(about, arrays)), digest
