"""What is known of each data set: shape, classes, normalisation, licence, and the content's digest.

A stand-in that a mirror holds in place of a data set is a data set of its own, under its own name,
and its `note` is shown with every result.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedlogit.errors import unknown

__all__ = ["DATASETS", "Card", "card"]


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
        mean: Per channel, of pixels scaled to [0, 1]; the values the papers normalise by.
        std: The same.
        licence: Under which it is distributed.
        homepage: Where it is described.
        digest: SHA-256 of the decoded content (`fedlogit.data.content_digest`); "" if not pinned.
        ordered: Whether the order of rows is part of the content; a mirror may have another.
        note: Why results with it are not results with what it stands in for.
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
    note: str = ""


_CIFAR10 = {"mean": (0.4914, 0.4822, 0.4465), "std": (0.2023, 0.1994, 0.2010)}
_IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
_EMNIST = {"mean": (0.1307,), "std": (0.3081,)}  # CELM's code normalises EMNIST as MNIST

_CARDS = (
    Card(
        "digits", "Digits (8x8)", 10, (8, 8, 1), 1437, 360, (0.287,), (0.354,),
        "BSD-3-Clause (scikit-learn)", "https://archive.ics.uci.edu/dataset/80",
    ),
    Card(
        "mnist", "MNIST", 10, (28, 28, 1), 60_000, 10_000, (0.1307,), (0.3081,),
        "CC BY-SA 3.0", "http://yann.lecun.com/exdb/mnist/",
    ),
    Card(
        "fashion_mnist", "Fashion-MNIST", 10, (28, 28, 1), 60_000, 10_000, (0.286,), (0.353,),
        "MIT", "https://github.com/zalandoresearch/fashion-mnist",
    ),
    Card(
        "cifar10", "CIFAR-10", 10, (32, 32, 3), 50_000, 10_000,
        licence="not stated by its authors",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html", **_CIFAR10,
    ),
    Card(
        "cifar100", "CIFAR-100", 100, (32, 32, 3), 50_000, 10_000,
        (0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761),
        "not stated by its authors", "https://www.cs.toronto.edu/~kriz/cifar.html", ordered=False,
    ),
    Card(
        "emnist_balanced", "EMNIST Balanced", 47, (28, 28, 1), 112_800, 18_800,
        licence="public domain (NIST)",
        homepage="https://www.nist.gov/itl/products-and-services/emnist-dataset", **_EMNIST,
    ),
    Card(
        "emnist47", "EMNIST-47 (subset of ByMerge)", 47, (28, 28, 1), 95_495, 7_050,
        licence="public domain (NIST)",
        homepage="https://www.nist.gov/itl/products-and-services/emnist-dataset",
        note="a class-capped subset of EMNIST ByMerge, not EMNIST Balanced", **_EMNIST,
    ),
    Card(
        "stl10", "STL-10 (unlabelled, 32x32)", 0, (32, 32, 3), 100_000, 0,
        licence="research use (ImageNet)",
        homepage="https://cs.stanford.edu/~acoates/stl10/", **_CIFAR10,
    ),
    Card(
        "tiny_imagenet32", "Tiny-ImageNet (unlabelled, 32x32)", 0, (32, 32, 3), 10_000, 0,
        licence="research use (ImageNet)", homepage="http://cs231n.stanford.edu/",
        note="Tiny-ImageNet images at 32x32, not STL-10", **_CIFAR10,
    ),
    Card(
        "wikitext2", "WikiText-2 (raw)", 0, (), 0, 0, (), (),
        "CC BY-SA 3.0", "https://huggingface.co/datasets/Salesforce/wikitext", kind="text",
    ),
    Card(
        "wikitext2_tokens", "WikiText-2 (tokenised)", 0, (), 0, 0, (), (),
        "CC BY-SA 3.0", "https://huggingface.co/datasets/Salesforce/wikitext", kind="text",
        note="the tokenised variant with <unk>, articles in another order; the papers use the raw one",
    ),
    Card(
        "fed_isic2019", "Fed-ISIC2019", 8, (224, 224, 3), 18_597, 4_650,
        licence="CC BY-NC 4.0", homepage="https://github.com/owkin/FLamby", **_IMAGENET,
    ),
)  # fmt: skip

DATASETS: dict[str, Card] = {c.name: c for c in _CARDS}


def card(name: str) -> Card:
    """Return the card of a data set.

    Raises:
        FedlogitError: if there is none of that name; the nearest one is suggested.
    """
    if name not in DATASETS:
        raise unknown("dataset", name, DATASETS)
    return DATASETS[name]
