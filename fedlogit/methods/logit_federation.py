"""The round that Average, UWA and the Meta-Model share (Who to Trust, Algorithm 1)."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch

from fedlogit.aggregation.targets import as_distributions
from fedlogit.errors import Diverged
from fedlogit.federation import Federation
from fedlogit.methods.base import Method

__all__ = ["LogitFederation"]

_LARGE = 1e18  # logits, of which float32 may not hold the square, nor the sum over clients


class LogitFederation(Method):
    """Clients train, show logits on the public set, and learn from the aggregate.

    The soft targets are softmax(z(x)) (eq. 2); "using the aggregated logits as soft targets" (§3)
    leaves the temperature open, which is `spec.temperature`, by default 1. Logits are taken in
    evaluation mode from images without augmentation, so that all clients predict on the same
    inputs.

    Absent clients: the aggregate is made of the logits of those present, and goes to them alone.
    The models of the others wait; who comes late has its own first weights.
    """

    needs_public: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True
    supports_external_public: ClassVar[bool] = True
    fixed_messages: ClassVar[bool] = True

    @property
    def sends_predictions(self) -> bool:
        """Logits, every round."""
        return True

    @property
    def distils_soft_targets(self) -> bool:
        """The aggregate of all logits."""
        return True

    def round(self, fed: Federation, r: int) -> None:
        """Do lines 2-11 of Algorithm 1."""
        fed.train_private()
        logits = fed.uplink("logits", fed.logits(fed.public))
        aggregate = self.aggregate(fed, logits)
        _check_overflow(aggregate, logits)
        targets = as_distributions(aggregate, logits, self.name)
        if fed.public_known:
            fed.log(ensemble_accuracy=fed.accuracy_on_public(targets))
        received = fed.downlink("logits", targets.float(), distributions=True)
        fed.distil(fed.public, received)

    @abstractmethod
    def aggregate(self, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
        """Return target distributions (points, classes) from logits (clients, points, classes)."""


def _check_overflow(aggregate: torch.Tensor, logits: torch.Tensor) -> None:
    """Refuse an aggregate that is not finite because logits, which are, were too large for it.

    Raises:
        Diverged: saying how large the largest is.
    """
    if isinstance(aggregate, torch.Tensor) and not aggregate.isfinite().all():
        largest = float(logits.abs().max())
        if largest > _LARGE:
            raise Diverged(f"logits of up to {largest:.2g} are too large to aggregate")
