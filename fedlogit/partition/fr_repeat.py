"""A free rider that repeats a few samples: the older generator of CELM's author (CELM §6.2)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedlogit.errors import FedlogitError
from fedlogit.partition.dir_client import dirichlet_parts
from fedlogit.partition.roles import WithFreeRider
from fedlogit.partition.tools import legacy_generator

__all__ = ["FrRepeat"]


class FrRepeat(WithFreeRider):
    """`dir_client` for everybody; then the last client keeps few samples, many times over.

    It draws `keep` of its samples with replacement and repeats them, in order, up to the mean size
    of the other clients, rounded down, so its size does not give it away. This is the free rider of
    the CELM author's public code (asimukaye/spectralfuse); CELM §6.1 describes one by its labels,
    see `fr`.

    Attributes:
        alpha: Concentration of the Dirichlet partition.
        keep: Samples that the free rider draws.
    """

    repeats: ClassVar[bool] = True

    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    keep: Annotated[int, Field(gt=0)] = 10

    def divide(
        self, labels: np.ndarray, clients: int, classes: int, seed: int, groups: np.ndarray | None
    ) -> list[np.ndarray]:
        """Divide the samples; see `Partition.split`."""
        if clients < 2:
            raise FedlogitError(f"clients = {clients}: fr_repeat needs at least 2")
        rng = legacy_generator(seed)
        *others, own = dirichlet_parts(labels, clients, classes, self.alpha, rng)
        if len(own) == 0:
            return [*others, own]
        few = rng.choice(own, self.keep, replace=True)
        return [*others, np.resize(few, int(np.mean([len(part) for part in others])))]

    def notes(self, labels: np.ndarray, parts: list[np.ndarray]) -> tuple[str, ...]:
        """Add who the free rider is and how little it holds."""
        kept = len(np.unique(parts[-1]))
        note = f"client {len(parts) - 1} is the free rider, with {kept} different samples"
        return (*super().notes(labels, parts), f"{self}: {note}")
