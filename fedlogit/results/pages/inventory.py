"""A page of Markdown with every model of the papers' files, and every data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from fedlogit import models
from fedlogit.data import DATASETS, Card, card
from fedlogit.data.sources import read_sources
from fedlogit.models.init import Uninitialised
from fedlogit.papers import Paper, expand
from fedlogit.papers.schema import TEST_SCALE
from fedlogit.results.formatting import markdown
from fedlogit.results.pages.templating import render
from fedlogit.spec import RunSpec

__all__ = ["inventory_page", "size"]


class _Use(NamedTuple):
    """A model on a data set: its call, and what it takes and gives."""

    model: str
    dataset: str
    shape: tuple[int, ...]
    classes: int


def inventory_page(papers: Sequence[Paper]) -> str:
    """Return the page.

    Args:
        papers: Their files; models are those of runs at any scale but ``smoke``.
    """
    return render(
        "inventory.md", models=_models(papers), contents=_contents(), datasets=_datasets()
    )


def size(model: str, shape: tuple[int, ...], classes: int) -> tuple[int, int]:
    """Return how many parameters a model has, and how many numbers of running statistics.

    Args:
        model: A call such as ``resnet18(stem='cifar')``.
        shape: Of one sample: (channels, height, width), or (length,) of a sequence.
        classes: Number of classes.
    """
    with Uninitialised():
        network = models.get(model).network(shape, classes)
    statistics = [b.numel() for b in network.buffers() if b.is_floating_point()]
    return sum(p.numel() for p in network.parameters()), sum(statistics)


def _models(papers: Sequence[Paper]) -> str:
    """Return a row per model and data set, ordered by model and then by size."""
    used: dict[_Use, dict[str, None]] = {}
    for paper in papers:
        for spec in _specs(paper):
            for use in _uses(spec):
                used.setdefault(use, {})[paper.short_name] = None
    rows = []
    for use, names in sorted(used.items()):
        parameters, statistics = size(use.model, use.shape, use.classes)
        rows.append(
            {
                "Model": f"`{use.model}`",
                "Data set": card(use.dataset).title,
                "Classes": f"{use.classes:,}",
                "Parameters": f"{parameters:,}",
                "Bytes": f"{4 * parameters:,}",
                "Bytes of statistics": f"{4 * statistics:,}",
                "In": ", ".join(names),
            }
        )
    right = ("Classes", "Parameters", "Bytes", "Bytes of statistics")
    return markdown(pd.DataFrame(rows), right=right)


def _specs(paper: Paper) -> Iterator[RunSpec]:
    """Yield the specs of a paper's runs at every scale but ``smoke``."""
    for scale in paper.scales:
        if scale != TEST_SCALE:
            for artefact in expand(paper, scale):
                yield from (cell.spec for cell in artefact.cells)


def _uses(spec: RunSpec) -> Iterator[_Use]:
    """Yield the models of a run's clients and of its server."""
    shape, classes = _sample(spec)
    for model in (*spec.models, *([spec.server.model] if spec.server else [])):
        yield _Use(str(model), spec.dataset, shape, classes)


def _sample(spec: RunSpec) -> tuple[tuple[int, ...], int]:
    """Return the shape of one sample of a run's data as models take it, and the classes."""
    if spec.text is not None:
        return (spec.text.length,), spec.text.vocabulary
    about = card(spec.dataset)
    height, width, channels = about.shape
    return (channels, height, width), about.classes


def _contents() -> str:
    """Return a row per data set: its samples, classes, shape, and the digest of its content."""
    rows = [
        {
            "Data set": about.title,
            "Training": f"{about.train:,}" if about.train else "text",
            "Test": f"{about.test:,}" if about.test else "–",
            "Classes": f"{about.classes}" if about.classes else "–",
            "Sample": " x ".join(map(str, about.shape)) or "text",
            "SHA-256": f"`{about.digest[:12]}`" if about.digest else "not pinned",
        }
        for about in DATASETS.values()
    ]
    return markdown(pd.DataFrame(rows), right=("Training", "Test", "Classes"))


def _datasets() -> str:
    """Return a row per data set: its licence, where it is described, where it is fetched."""
    rows = [
        {
            "Data set": f"[{about.title}]({about.homepage})",
            "In a paper's file": f"`{about.name}`",
            "Licence": about.licence,
            "Fetched": _kinds_of_sources(about),
            "Stands for": f"`{about.stands_for}`" if about.stands_for else "–",
        }
        for about in DATASETS.values()
    ]
    return markdown(pd.DataFrame(rows))


def _kinds_of_sources(about: Card) -> str:
    """Return the kinds of sources, in the order in which they are tried."""
    return ", ".join(dict.fromkeys(source.kind for source in read_sources(about.name)))
