"""A federation that makes and counts every message, and whose models stay what they are.

What a message weighs depends on sizes, not on values (`fedlogit.engine.ledger_only`): so what takes
long and changes only values is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fedlogit.engine.client import State
from fedlogit.federation.averaging import same_architecture
from fedlogit.federation.federation import Federation
from fedlogit.federation.ledger import Entry

__all__ = ["LedgerOnlyFederation"]


class LedgerOnlyFederation(Federation):
    """Takes the same arguments, and has the same operations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Put a federation together, of which no message has been counted yet."""
        super().__init__(*args, **kwargs)
        self._booked: dict[str, list[Entry]] = {}

    def send_alike(self, name: str, step: Callable[[], None]) -> None:
        """Do a step once and book its messages again in later rounds, where all are there.

        A language model's logits of thousands of rounds take hours to make, though all are 0.
        """
        if self.spec.participation is not None:
            step()
        elif name in self._booked:
            self.ledger.rebook(self._booked[name])
        else:
            with self.ledger.noting() as self._booked[name]:
                step()

    def once(
        self, name: str, step: Callable[[], Mapping[str, torch.Tensor]]
    ) -> dict[str, torch.Tensor]:
        """Do a step; without training none takes long."""
        return dict(step())

    def merge(self, weights: Sequence[float] | None = None) -> State:
        """Return any client's model: averages of thousands of rounds take hours."""
        same_architecture(self.clients, self.spec.method.name)
        return self.clients[0].state()

    def broadcast(self, state: State, *, backbone_only: bool = False) -> None:
        """Leave the clients' models as they are."""

    def take_log(self) -> dict[str, float]:
        """Return no columns, since nobody trains or predicts."""
        super().take_log()
        return {}
