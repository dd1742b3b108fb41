"""MinE: the most certain client labels the sample (FedOL §V-A)."""

from __future__ import annotations

from typing import ClassVar

import torch

from fedlogit.aggregation import Targets
from fedlogit.aggregation.hard_votes import least_entropy
from fedlogit.aggregation.targets import one_hot_targets
from fedlogit.methods.one_shot import OneShot

__all__ = ["MinE"]


class MinE(OneShot):
    """A "voting method that chooses the prediction with the lowest entropy"; no parameters.

    Absent clients: the most certain of those present labels the sample.
    """

    name: ClassVar[str] = "mine"

    def targets(self, logits: torch.Tensor) -> Targets:
        """Return one-hot labels of the client with the least entropy."""
        return one_hot_targets(least_entropy(logits), logits.shape[-1])
