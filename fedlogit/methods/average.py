"""Average: the plain mean of the clients' logits (Who to Trust §3.1.1)."""

from __future__ import annotations

from typing import ClassVar

import torch

from fedlogit.aggregation.average import average_logits
from fedlogit.federation import Federation
from fedlogit.methods.logit_federation import LogitFederation

__all__ = ["Average"]


class Average(LogitFederation):
    """Simple averaging of logits; it has no parameters.

    Absent clients: the mean is over those present.
    """

    supports_sequences: ClassVar[bool] = True

    def aggregate(self, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
        """Return softmax(z̄(x)), eq. 1-2."""
        return average_logits(logits).softmax(-1)
