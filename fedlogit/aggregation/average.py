"""Simple averaging of logits (Who to Trust §3.1.1, eq. 1)."""

from __future__ import annotations

import torch

__all__ = ["average_logits"]


def average_logits(logits: torch.Tensor) -> torch.Tensor:
    """Return z̄(x) = (1/M) Σ f_i(x).

    Args:
        logits: (clients, points, classes).

    Returns:
        Averaged logits, (points, classes).
    """
    return logits.mean(0)
