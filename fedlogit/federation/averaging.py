"""The weighted average of models of one architecture."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedlogit.engine.client import Client, State
from fedlogit.errors import FedlogitError

__all__ = ["average_states", "same_architecture"]


def average_states(states: Sequence[State], weights: Sequence[float] | None) -> State:
    """Return the weighted average of parameters and floating buffers.

    Args:
        states: Of one architecture.
        weights: One per state, summing to 1; None averages uniformly. Integer buffers come from
            the first state.

    Raises:
        FedlogitError: if the weights do not sum to 1, or are too many or too few.
    """
    n = len(states)
    shares = [1 / n] * n if weights is None else list(weights)
    if len(shares) != n or not abs(sum(shares) - 1) <= 1e-6:  # nor if it is NaN
        raise FedlogitError(f"merge weights must be {n} numbers that sum to 1, not {shares}")
    return State(
        _average([s.vector for s in states], shares),
        _average([s.buffers for s in states], shares),
        states[0].counters,
    )


def same_architecture(clients: Sequence[Client], method: str) -> None:
    """Refuse to average models of different architectures.

    Raises:
        FedlogitError: naming the method and the architectures.
    """
    kinds = {client.architecture for client in clients}
    if len(kinds) > 1:
        raise FedlogitError(
            f"method {method}: cannot average different architectures "
            f"({', '.join(sorted(kinds))}); give all clients one model"
        )


def _average(tensors: Sequence[torch.Tensor], weights: Sequence[float]) -> torch.Tensor:
    """Average in float64, so that the order of clients matters only in the last bit of float32."""
    total = torch.zeros_like(tensors[0], dtype=torch.float64)
    for tensor, weight in zip(tensors, weights, strict=True):
        total.add_(tensor, alpha=weight)
    return total.to(tensors[0].dtype)
