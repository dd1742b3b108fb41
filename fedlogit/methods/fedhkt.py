"""FedHKT: ensemble distillation weighted by confidence (Deng et al. 2023; FedOL eq. 14)."""

from __future__ import annotations

from typing import ClassVar

import torch

from fedlogit.aggregation.confidence import entropy_weights, mixture
from fedlogit.methods.one_shot import OneShot

__all__ = ["FedHKT"]


class FedHKT(OneShot):
    """FedHKT in one shot: what FedOL is without pseudo-labels.

    The original also averages models inside groups of similar clients; with one round and
    different architectures there is nothing to average, and only its weighted distillation is left.
    No code of it is public. It has no parameters.

    Absent clients: λ is a softmax over those present.
    """

    name: ClassVar[str] = "fedhkt"

    def targets(self, logits: torch.Tensor) -> torch.Tensor:
        """Return Σ_k λ_k(x) p_k(x), with λ = softmax of negative entropies."""
        return mixture(logits, entropy_weights(logits)).float()
