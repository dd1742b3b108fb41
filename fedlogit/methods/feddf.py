"""FedDF: distil the mean of all clients' logits (Lin et al. 2020; FedOL §V-A)."""

from __future__ import annotations

from typing import ClassVar

import torch

from fedlogit.aggregation.average import average_logits
from fedlogit.methods.one_shot import OneShot

__all__ = ["FedDF"]


class FedDF(OneShot):
    """Ensemble distillation with equal weights; it has no parameters.

    Absent clients: the ensemble is of those present.
    """

    name: ClassVar[str] = "feddf"

    @property
    def distils_soft_targets(self) -> bool:
        """The ensemble's, and in several rounds the server's."""
        return True

    def targets(self, logits: torch.Tensor) -> torch.Tensor:
        """Return softmax of the mean logits."""
        return average_logits(logits).softmax(1)
