"""What is known of each data set: shape, classes, normalisation, licence, and the content's digest.

A stand-in that a mirror holds in place of a data set is a data set of its own, under its own name,
and its `note` is shown with every result.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Any

from fedlogit.errors import FedlogitError, unknown

__all__ = ["DATASETS", "Card", "card"]

_TEXT = 256 << 20  # bytes of a text at most: its card does not say how many; WikiText-2 has 11e6
_SLACK = 16 << 20  # bytes for what a mirror may hold besides, such as coarser labels
_LABELS = 16  # bytes of a sample's label and group
# What a field of each type may be, as its annotation is written below.
_RIGHT = {"str": "a text in quotes", "int": "a whole number from 0", "bool": "True or False"}


@dataclass(frozen=True)
class Card:
    """A data set as the papers use it.

    Attributes:
        name: How specs call it.
        title: How tables call it.
        kind: ``images``, or ``text``.
        classes: Number of classes; 0 if unlabelled or text.
        shape: (height, width, channels) as stored; () for text.
        train: Number of training samples (bytes for text; 0 if it varies).
        test: Number of test samples.
        mean: Per channel, of pixels scaled to [0, 1]; runs normalise by it (docs/deviations.md).
        std: The same.
        licence: Under which it is distributed.
        homepage: Where it is described.
        digest: SHA-256 of the decoded content (`content.content_digest`); "" if not pinned.
        ordered: Whether the order of rows is part of the content; a mirror may have another.
        balanced: Whether all classes have equally many samples, in each split.
        groups: Number of centres that the samples come from; 0 if they are not known.
        tokenised: For text, whether rare words were replaced by ``<unk>``.
        stands_for: The data set in whose place it is offered, or "".
        note: Why results with it are not results with what it stands in for; shown with each.
    """

    name: str
    title: str
    classes: int
    shape: tuple[int, ...]
    train: int
    test: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    licence: str
    homepage: str
    kind: str = "images"
    digest: str = ""
    ordered: bool = True
    balanced: bool = False
    groups: int = 0
    tokenised: bool = False
    note: str = ""
    stands_for: str = ""

    @property
    def unpinned(self) -> str:
        """A remark for a data set whose content may differ from one machine to another, or ""."""
        return "" if self.digest else "content not pinned"

    @property
    def limit(self) -> int:
        """Bytes of content at most; files that unpack to more are refused before they are read."""
        if self.kind == "text":
            return _TEXT
        return _SLACK + (self.train + self.test) * (math.prod(self.shape) + _LABELS)

    def check(self) -> None:
        """Refuse a card that does not fit itself, as when it was written by hand.

        Raises:
            FedlogitError: naming the card, the key, its value and what would be right.
        """
        for field in fields(self):
            found = getattr(self, field.name)
            typed = type(found).__name__ == field.type and (field.type != "int" or found >= 0)
            if field.type in _RIGHT and not typed:
                raise self._wrong(field.name, _RIGHT[str(field.type)])
        if self.kind not in ("images", "text"):
            raise self._wrong("kind", "'images' or 'text'")
        if not re.fullmatch("([0-9a-f]{64})?", self.digest):
            raise self._wrong("digest", "the 64 hex digits that prepare writes, or ''")
        if self.kind == "images":
            self._check_images()
            return
        if self.shape != ():
            raise self._wrong("shape", "(), which a text has")

    def _check_images(self) -> None:
        """Refuse sizes that no images have, and moments that do not fit them.

        Raises:
            FedlogitError: as `check`.
        """
        sides = self.shape if isinstance(self.shape, tuple) else ()
        if len(sides) != 3 or not all(type(side) is int and side > 0 for side in sides):
            raise self._wrong("shape", "(height, width, channels), whole numbers from 1")
        for key, needed in (("train", True), ("test", self.classes > 0)):
            if needed and not getattr(self, key):
                raise self._wrong(key, "a number of images from 1")
        if self.balanced and not self.classes:
            raise self._wrong("balanced", "False where classes = 0")
        for key, least in (("mean", 0), ("std", 1e-6)):
            if not _is_of_pixels(getattr(self, key), sides[2], least):
                above = ", and above 0" if least else ""
                right = f"a number for each of {sides[2]} channels, of pixels from 0 to 1{above}"
                raise self._wrong(key, right)

    def _wrong(self, key: str, right: str) -> FedlogitError:
        """Return the error of a field, with what it should be."""
        return FedlogitError(
            f"card of {self.name} in fedlogit/data/cards.py: {key} = {getattr(self, key)!r}: should"
            f" be {right}"
        )

    def splits(self) -> list[tuple[str, int]]:
        """Return the splits of images that exist, and their sizes."""
        return [(s, n) for s, n in (("train", self.train), ("test", self.test)) if n]


def _is_of_pixels(found: Any, channels: int, least: float) -> bool:
    """Return whether this is a tuple of a number from `least` to 1 for each channel."""
    if not isinstance(found, tuple) or len(found) != channels:
        return False
    return all(type(value) in (int, float) and least <= value <= 1 for value in found)


# Means and deviations in common use; no paper gives its own.
_CIFAR10 = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_EMNIST = ((0.1307,), (0.3081,))  # CELM's code normalises EMNIST as MNIST

_CARDS = (
    Card(
        "digits", "Digits (8x8)", 10, (8, 8, 1), 1437, 360, (0.287,), (0.354,),
        "BSD-3-Clause (scikit-learn)", "https://archive.ics.uci.edu/dataset/80",
        digest="67b950fa12a7e31f25ed4d48611e7971591532259b72eb5035c7c51f70d32e53",
    ),
    Card(
        "photos8", "Photo tiles (8x8, unlabelled)", 0, (8, 8, 1), 8480, 0, (0.287,), (0.354,),
        "CC BY 2.0 (scikit-learn's sample images)",
        "https://scikit-learn.org/stable/modules/generated/sklearn.datasets.load_sample_images.html",
    ),
    Card(
        "mnist", "MNIST", 10, (28, 28, 1), 60_000, 10_000, (0.1307,), (0.3081,),
        "CC BY-SA 3.0", "http://yann.lecun.com/exdb/mnist/",
        digest="331cf54b8ca51dd3c6f33e92f78945249354a4cc0a96a4a54dcf6c88e02a5ad1",
    ),
    Card(
        "fashion_mnist", "Fashion-MNIST", 10, (28, 28, 1), 60_000, 10_000, (0.286,), (0.353,),
        "MIT", "https://github.com/zalandoresearch/fashion-mnist",
        digest="95177c55ee2ce35a9cb6cad41de3c5a04364e6f31245d13fac8d01eba5d7132a",
        balanced=True,
    ),
    Card(
        "cifar10", "CIFAR-10", 10, (32, 32, 3), 50_000, 10_000,
        licence="not stated by its authors",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        digest="db80428cfb2749a47d4e6176db80a682a0ba1305a9578c7b1266b90c3e78b235",
        balanced=True, mean=_CIFAR10[0], std=_CIFAR10[1],
    ),
    Card(
        "cifar100", "CIFAR-100", 100, (32, 32, 3), 50_000, 10_000,
        (0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761),
        "not stated by its authors", "https://www.cs.toronto.edu/~kriz/cifar.html",
        digest="33c121e6c8e433a47f334919d3ac2a5d562c7184df71f6423cff7431c745dc06",
        ordered=False, balanced=True,
    ),
    Card(
        "emnist_balanced", "EMNIST Balanced", 47, (28, 28, 1), 112_800, 18_800,
        licence="public domain (NIST)",
        homepage="https://www.nist.gov/itl/products-and-services/emnist-dataset",
        balanced=True, mean=_EMNIST[0], std=_EMNIST[1],
    ),
    Card(
        "emnist47", "EMNIST-47 (subset of ByMerge)", 47, (28, 28, 1), 95_495, 7_050,
        licence="public domain (NIST)",
        homepage="https://www.nist.gov/itl/products-and-services/emnist-dataset",
        digest="6cb1ae68dc8905e09c40b345e1687284c20fd2f1b25b6b34c62c0783955ae805",
        stands_for="emnist_balanced",
        note="a class-capped subset of EMNIST ByMerge (47 classes), not EMNIST Balanced",
        mean=_EMNIST[0], std=_EMNIST[1],
    ),
    Card(
        "stl10", "STL-10 (unlabelled, 32x32)", 0, (32, 32, 3), 100_000, 0,
        licence="research use (ImageNet)",
        homepage="https://cs.stanford.edu/~acoates/stl10/", mean=_CIFAR10[0], std=_CIFAR10[1],
    ),
    Card(
        "tiny_imagenet32", "Tiny-ImageNet (unlabelled, 32x32)", 0, (32, 32, 3), 10_000, 0,
        licence="research use (ImageNet)", homepage="http://cs231n.stanford.edu/",
        digest="02149c7246eaabdac355418ab4220310be52ff62746dd062b4c5d30de68f3785",
        stands_for="stl10",
        note="10,000 unlabelled Tiny-ImageNet images at 32x32, not STL-10",
        mean=_CIFAR10[0], std=_CIFAR10[1],
    ),
    Card(
        "wikitext2", "WikiText-2 (raw)", 0, (), 0, 0, (), (),
        "CC BY-SA 3.0", "https://huggingface.co/datasets/Salesforce/wikitext", kind="text",
    ),
    Card(
        "wikitext2_tokens", "WikiText-2 (tokenised)", 0, (), 0, 0, (), (),
        "CC BY-SA 3.0", "https://huggingface.co/datasets/Salesforce/wikitext", kind="text",
        digest="b2821bb7111a19ad24a8e10404622f5b5c2bd45d28ee9f0e93b3896e0a4b73c5",
        tokenised=True, stands_for="wikitext2",
        note="tokenised WikiText-2 with the articles in another order; the papers use the raw one",
    ),
    Card(
        "sklearn_docs", "scikit-learn's docstrings", 0, (), 0, 0, (), (),
        "BSD-3-Clause (scikit-learn)", "https://scikit-learn.org", kind="text",
        note="docstrings of scikit-learn, another text with each of its versions; not WikiText-2",
    ),
    Card(
        "fed_isic2019", "Fed-ISIC2019", 8, (224, 224, 3), 18_597, 4_650,
        licence="CC BY-NC 4.0", homepage="https://github.com/owkin/FLamby", groups=6,
        mean=_IMAGENET[0], std=_IMAGENET[1],
    ),
)  # fmt: skip

DATASETS: dict[str, Card] = {c.name: c for c in _CARDS}


def card(name: str) -> Card:
    """Return the card of a data set.

    Raises:
        FedlogitError: if there is none of that name; the nearest one is suggested. Or it is wrong.
    """
    if name not in DATASETS:
        raise unknown("dataset", name, DATASETS)
    DATASETS[name].check()
    return DATASETS[name]
