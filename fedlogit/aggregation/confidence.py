"""Confidence of predictions: entropies, weights made of them, class-wise confidence.

All in float64, and in natural logarithms.
"""

from __future__ import annotations

import torch

__all__ = ["class_confidence", "entropies", "entropy_weights", "mixture"]


def entropies(logits: torch.Tensor) -> torch.Tensor:
    """Return H(p(x)) of each model's prediction, in nats.

    Args:
        logits: (models, points, classes).

    Returns:
        (models, points), float64, from 0 (certain) to log classes.
    """
    logs = logits.double().log_softmax(-1)
    return -(logs.exp() * logs).sum(-1)


def entropy_weights(logits: torch.Tensor) -> torch.Tensor:
    """Return λ_k(x) = softmax_k(-H(p_k(x))) (FedOL eq. 14).

    Args:
        logits: (clients, points, classes).

    Returns:
        Weights that sum to 1 over clients, (clients, points); uniform where entropies are equal.
    """
    return (-entropies(logits)).softmax(0)


def class_confidence(logits: torch.Tensor) -> torch.Tensor:
    """Return C²_k, each model's mean probability of each class over the public set (FedOL eq. 10).

    A model that never saw a class gives it little probability anywhere, so that C² tells what a
    model is strong in without a label.

    Args:
        logits: (models, points, classes).

    Returns:
        (models, classes), float64; each row sums to 1.
    """
    return logits.double().softmax(-1).mean(1)


def mixture(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return Σ_k λ_k(x) p_k(x), float64 (points, classes).

    Σ_k λ_k KL(p_k ‖ q) has the same gradient in q as KL(Σ_k λ_k p_k ‖ q), so one target serves for
    all clients.

    Args:
        logits: (clients, points, classes).
        weights: (clients, points), summing to 1 over clients.
    """
    return torch.einsum("kpc,kp->pc", logits.double().softmax(-1), weights.double())
