"""Simple averaging of logits, and of probabilities (Who to Trust §3.1.1, eq. 1)."""

from __future__ import annotations

import torch

__all__ = ["average_logits", "average_probabilities"]


def average_logits(logits: torch.Tensor) -> torch.Tensor:
    """Return z̄(x) = (1/M) Σ f_i(x).

    Args:
        logits: (clients, points, classes).

    Returns:
        Averaged logits, (points, classes).
    """
    return logits.mean(0)


def average_probabilities(logits: torch.Tensor) -> torch.Tensor:
    """Return (1/M) Σ softmax f_i(x): where models are confident, another thing than mean logits.

    Args:
        logits: (clients, points, classes).

    Returns:
        Distributions, (points, classes).
    """
    return logits.softmax(-1).mean(0)
