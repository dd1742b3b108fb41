"""An engine that neither trains nor predicts, for runs that only count what they send.

What a message weighs depends on how many samples, classes and parameters there are, not on values.
So the ledger of a run needs no training: the method's own code makes every message, of models of
the run's architectures and of logits of the run's shape, and counts it. That takes seconds where
training the same run would take days.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import torch

from fedlogit.engine.base import Engine
from fedlogit.engine.client import Client
from fedlogit.engine.task import ClientTask

__all__ = ["LedgerOnlyEngine"]


class LedgerOnlyEngine(Engine):
    """Models keep their first weights, and all logits are 0."""

    name: ClassVar[str] = "none"

    def train(self, tasks: Sequence[ClientTask]) -> list[float]:
        """Train nobody."""
        return [0.0] * len(tasks)

    def predict(
        self, models: Sequence[Client], batches: Iterable[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Yield 0 in the shape of logits."""
        for x in batches:
            yield torch.stack([self.forward(model, x) for model in models])

    def forward(self, model: Client, x: torch.Tensor) -> torch.Tensor:
        """Return 0 in the shape of logits: a row a sample, or a row a token."""
        shape = (*(x.shape if self.data.tokens else x.shape[:1]), self.data.classes)
        return torch.zeros(shape, device=x.device)
