"""Local: every client trains alone, the baseline without communication."""

from __future__ import annotations

from typing import ClassVar

import torch

from fedlogit.aggregation import Targets
from fedlogit.federation import Federation
from fedlogit.methods.base import Method

__all__ = ["Local"]


class Local(Method):
    """Private training and nothing else.

    Absent clients: those present train.
    """

    one_shot: ClassVar[bool] = True
    supports_sequences: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True
    supports_external_public: ClassVar[bool] = True
    fixed_messages: ClassVar[bool] = True

    @property
    def shares_clients(self) -> bool:
        """Unless a subclass has a round of its own."""
        return super().shares_clients and type(self).round is Local.round

    def round(self, fed: Federation, r: int) -> None:
        """Train."""
        fed.train_private()

    def exchange(self, fed: Federation, logits: torch.Tensor, targets: Targets | None) -> None:
        """Do nothing: nobody learns from anybody."""
