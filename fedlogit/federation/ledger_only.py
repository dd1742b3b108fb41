"""A federation that sends and counts, and neither trains nor predicts.

What a message weighs depends on how many samples, classes and parameters there are, not on values.
So the ledger of a run needs no training: the method's own code makes every message, of models of
the run's architectures and of logits of the run's shape, and counts it. That takes seconds where
training the same run would take days.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from fedlogit.federation.client import Client
from fedlogit.federation.federation import Federation
from fedlogit.federation.work import Work

__all__ = ["LedgerOnly"]


class LedgerOnly(Federation):
    """Models keep their first weights, all logits are 0, and nothing is noted but bytes."""

    def _train(
        self, works: Sequence[Work], name: str, kernel: Callable[..., float] | None = None
    ) -> None:
        """Train nobody."""

    def logits(self, points: torch.Tensor, models: Sequence[Client] | None = None) -> torch.Tensor:
        """Return 0 in the shape of logits."""
        asked = self.clients if models is None else models
        return torch.stack([self._zeros(points) for _ in asked])

    def _forward(self, client: Client, points: torch.Tensor) -> torch.Tensor:
        return self._zeros(points)

    def _zeros(self, points: torch.Tensor) -> torch.Tensor:
        """Return logits of one model, float32 (n, classes) or (n, T, classes)."""
        shape = (*self.data.labels[points].shape, self.classes)
        return torch.zeros(shape, device=self.data.device)

    def take_log(self) -> dict[str, float]:
        """Return nothing: what a method notes here is about predictions that nobody made."""
        self._log = {}
        return {}
