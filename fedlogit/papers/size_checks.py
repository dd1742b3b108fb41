"""Checks of planned runs against what is known of their data sets without having them."""

from __future__ import annotations

from collections.abc import Iterator

from fedlogit import partition
from fedlogit.data import DATASETS
from fedlogit.errors import FedlogitError
from fedlogit.papers.planned import PlannedArtefact
from fedlogit.spec import RunSpec

__all__ = ["check_sizes"]


def check_sizes(planned: PlannedArtefact) -> None:
    """Refuse numbers of samples and of classes that a data set does not have, by its card.

    Raises:
        FedlogitError: naming the key, the value and what the data set has, before anything is
            downloaded or trained for it.
    """
    checked = set()
    for cell in planned.cells:
        place = (cell.resolved.split, cell.spec.test_size)
        if place not in checked:
            checked.add(place)
            for wrong in _wrong_sizes(cell.spec):
                raise FedlogitError(
                    f"{planned.paper.paper}.yaml: {planned.id} at scale {planned.scale}:"
                    f" {wrong} of {cell.spec.dataset}"
                )


def _wrong_sizes(spec: RunSpec) -> Iterator[str]:
    """Yield what does not fit a run's data set; nothing of a text, or one of unknown size."""
    card = DATASETS.get(spec.dataset)
    if card is None or card.kind != "images" or not card.train:
        return
    for key, size, most, split in (
        ("train_size", spec.train_size, card.train, "training"),
        ("test_size", spec.test_size, card.test, "test"),
    ):
        if size is not None and most and size > most:
            yield f"{key} = {size}: give at most the {most} {split} samples"
    pool = spec.train_size or card.train
    if spec.public and spec.public.dataset is None and spec.public.size >= pool:
        yield f"public.size = {spec.public.size}: give less than the {pool} training samples"
    try:
        partition.get(spec.partition).check_classes(card.classes)
    except FedlogitError as error:
        yield str(error)
