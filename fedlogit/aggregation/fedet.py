"""FedET's weighted consensus with diversity (Cho et al. 2022, §3.2)."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from fedlogit.aggregation.targets import Targets

__all__ = ["consensus_with_diversity", "variance_weights"]


def variance_weights(logits: torch.Tensor) -> torch.Tensor:
    """Return α_k(x) = Var_c(z_k(x)) / Σ_l Var_c(z_l(x)), the variance taken over classes.

    A model whose logits differ much is taken to know. The public port's variance of log-softmax
    is the same number, since log-softmax only shifts logits.

    Args:
        logits: (clients, points, classes).

    Returns:
        Weights that sum to 1 over clients, (clients, points), float64; uniform where all are 0.
    """
    spread = logits.double().var(-1, correction=0)
    total = spread.sum(0)
    uniform = torch.full_like(spread, 1 / len(spread))
    return torch.where(total > 0, spread / total.clamp_min(1e-300), uniform)


def consensus_with_diversity(logits: torch.Tensor, regularisation: float) -> Targets:
    """Return the target of CE(ŷ, f) + λ KL(σ(z_div) ‖ f).

    ŷ is the class of the weighted consensus Σ α_k z_k; z_div is the weighted mean of those clients
    that disagree with it. Both terms are cross-entropies, so one target of weight 1 + λ has their
    gradient: (onehot(ŷ) + λ σ(z_div)) / (1 + λ). Where nobody disagrees the second term is absent.

    Args:
        logits: (clients, points, classes).
        regularisation: λ.
    """
    weights = variance_weights(logits)
    z = logits.double()
    classes = logits.shape[-1]
    label = torch.einsum("kp,kpc->pc", weights, z).argmax(1)
    dissent = weights * (logits.argmax(-1) != label)
    total = dissent.sum(0)
    share = dissent / total.clamp_min(1e-300)
    diverse = torch.einsum("kp,kpc->pc", share, z).softmax(1)
    strength = regularisation * (total > 0).double()
    mixed = F.one_hot(label, classes).double() + strength[:, None] * diverse
    return Targets((mixed / (1 + strength)[:, None]).float(), (1 + strength).float())
