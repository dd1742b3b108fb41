"""Uncertainty-weighted averaging by densities of logits (Who to Trust §3.1.3, eq. 5-7).

A client describes its own logits on held-out data by a mixture of diagonal Gaussians with uniform
weights, one component a class it holds. Its weight on a public sample is the softmax, over
clients, of the log-density of its logits there. All in float64: densities in ten dimensions
differ by tens of nats, and weights are nearly one-hot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

__all__ = ["Mixture", "fit_classes", "fit_em", "log_density", "trust", "weighted_logits"]


@dataclass(frozen=True)
class Mixture:
    """Diagonal Gaussians with uniform weights 1/k.

    Attributes:
        means: (components, classes), float64.
        variances: The same shape, positive.
    """

    means: torch.Tensor
    variances: torch.Tensor


def fit_classes(logits: torch.Tensor, labels: torch.Tensor, floor: float) -> Mixture:
    """Fit one component per class by its own samples' mean and (population) variance.

    Eq. 5 indexes components by class, so they are fitted with the labels. A class with fewer
    than two samples has no variance: its component is left out and the others share its weight.

    Args:
        logits: The client's logits on its held-out samples, (n, classes).
        labels: Their true classes, (n,).
        floor: Smallest variance, in squared logits; without one a confident client's density is
            a spike that nobody else's logits fall into.
    """
    logits = logits.double()
    groups = [logits[labels == c] for c in labels.unique()]
    groups = [g for g in groups if len(g) >= 2]
    if not groups:
        empty = logits.new_empty(0, logits.shape[1])
        return Mixture(empty, empty)
    means = torch.stack([g.mean(0) for g in groups])
    variances = torch.stack([g.var(0, correction=0) for g in groups])
    return Mixture(means, variances.clamp_min(floor))


def fit_em(logits: torch.Tensor, components: int, floor: float, seed: int) -> Mixture:
    """Fit the components by expectation-maximisation, without labels; weights become 1/k.

    Args:
        logits: (n, classes).
        components: Number of components, the client's number of classes; at most n are fitted.
        floor: Smallest variance, as of `fit_classes`. While fitting, it is added to all variances,
            which keeps a component from collapsing onto one sample; from the result it is taken.
        seed: Of the k-means start.
    """
    from sklearn.mixture import GaussianMixture  # takes a second to import

    model = GaussianMixture(
        min(components, len(logits)), covariance_type="diag", reg_covar=floor, random_state=seed
    ).fit(logits.double().cpu().numpy())
    means = torch.as_tensor(model.means_, device=logits.device)
    variances = torch.as_tensor(model.covariances_ - floor, device=logits.device)
    return Mixture(means, variances.clamp_min(floor))


def log_density(mixture: Mixture, logits: torch.Tensor) -> torch.Tensor:
    """Return ℓ(x) of eq. 5 at each row: log (1/k) Σ_k Π_d N(f_d; μ_kd, σ²_kd), float64.

    Args:
        mixture: A client's mixture; one without components has density 0 everywhere.
        logits: (points, classes).

    Returns:
        (points,); −inf for a mixture without components.
    """
    z = logits.double()
    k, d = mixture.means.shape
    if k == 0:
        return z.new_full((len(z),), -math.inf)
    spread = mixture.variances.log().sum(1)
    squares = ((z[:, None] - mixture.means) ** 2 / mixture.variances).sum(2)
    components = -0.5 * (d * math.log(2 * math.pi) + spread + squares)
    return torch.logsumexp(components, 1) - math.log(k)


def trust(densities: torch.Tensor) -> torch.Tensor:
    """Return w_i(x) of eq. 6: the softmax of log-densities over clients.

    Args:
        densities: ℓ_i(x), (clients, points), float64. Where all are −inf nobody is preferred.

    Returns:
        Weights that sum to 1 over clients, (clients, points).
    """
    nobody = torch.isneginf(densities).all(0)
    return torch.where(nobody, torch.zeros_like(densities), densities).softmax(0)


def weighted_logits(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return z(x) = Σ_i w_i(x) f_i(x) of eq. 7, float64 (points, classes)."""
    return torch.einsum("mpc,mp->pc", logits.double(), weights)
