"""What TallyTrain's peers make of logits, in one call."""

from __future__ import annotations

import torch

from fedlogit.federation import Federation
from fedlogit.methods.tally_train import TallyTrain


def consensus_of(method: TallyTrain, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
    """Exchange messages about logits and return the consensus."""
    return method.consensus(fed, method.exchange_messages(fed, logits))
