"""Uncertainty-weighted averaging by densities of logits (Who to Trust §3.1.3, eq. 5-7).

A client describes its own logits on held-out data by a mixture of diagonal Gaussians with uniform
weights, one component a class it holds. Its weight on a public sample is the softmax, over
clients, of the log-density of its logits there. All in float64: densities in ten dimensions
differ by tens of nats, and weights are nearly one-hot.

Whether logits are Gaussian, and independent of each other, is an assumption of the paper; mixtures
with whole or shrunk covariances, kernel densities and normalising flows (`flow.py`) can take the
place of the diagonal one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from fedlogit.errors import Diverged

__all__ = [
    "Density",
    "Mixture",
    "by_class",
    "density_weights",
    "fit_classes",
    "fit_em",
    "fit_full",
    "fit_kernel",
    "largest_variance",
    "no_density",
    "weighted_logits",
]


class Density(Protocol):
    """What a client fits to its own logits."""

    def log_density(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the log-density at each row of (points, classes), float64 (points,)."""


@dataclass(frozen=True)
class Mixture:
    """Gaussians with uniform weights 1/k.

    Attributes:
        means: (components, classes), float64.
        variances: The same shape, positive; along the axes.
        axes: Principal axes of each component as columns, (components, classes, classes), float64;
            None where they are those of the logits.
    """

    means: torch.Tensor
    variances: torch.Tensor
    axes: torch.Tensor | None = None

    def log_density(self, logits: torch.Tensor) -> torch.Tensor:
        """Return ℓ(x) of eq. 5 at each row: log (1/k) Σ_k Π_d N(f_d; μ_kd, σ²_kd), float64.

        Args:
            logits: (points, classes).

        Returns:
            (points,); −inf without components.
        """
        z = logits.double()
        k, d = self.means.shape
        if k == 0:
            return z.new_full((len(z),), -math.inf)
        spread = self.variances.log().sum(1)
        deviations = z[:, None] - self.means
        if self.axes is not None:
            deviations = torch.einsum("nkd,kda->nka", deviations, self.axes)
        squares = (deviations**2 / self.variances).sum(2)
        components = -0.5 * (d * math.log(2 * math.pi) + spread + squares)
        return torch.logsumexp(components, 1) - math.log(k)


def fit_classes(groups: list[torch.Tensor], floor: float) -> Mixture:
    """Fit one component per class by its own samples' mean and (population) variance.

    Eq. 5 indexes components by class, so they are fitted with the labels.

    Args:
        groups: The client's logits on its held-out samples, those of each class together, of one
            class or more; see `by_class`.
        floor: Smallest variance, in squared logits; without one a confident client's density is
            a spike that nobody else's logits fall into.
    """
    means = torch.stack([g.mean(0) for g in groups])
    variances = torch.stack([g.var(0, correction=0) for g in groups])
    return Mixture(means, variances.clamp_min(floor))


def fit_full(groups: list[torch.Tensor], floor: float, *, shrunk: bool) -> Mixture:
    """Fit one component per class by its own samples' mean and whole covariance.

    A class with no more samples than logits has a singular covariance: the smallest variances
    along its axes become the floor, or it is shrunk towards a multiple of the identity.

    Args:
        groups: As of `fit_classes`.
        floor: Smallest variance along an axis, in squared logits.
        shrunk: By as much as Ledoit and Wolf (2004) estimate to be best for the squared error.
    """
    from sklearn.covariance import empirical_covariance, ledoit_wolf

    samples = [group.cpu().numpy() for group in groups]
    found = [ledoit_wolf(x)[0] if shrunk else empirical_covariance(x) for x in samples]
    covariances = torch.as_tensor(np.stack(found), device=groups[0].device)
    variances, axes = torch.linalg.eigh(covariances)
    return Mixture(torch.stack([g.mean(0) for g in groups]), variances.clamp_min(floor), axes)


def fit_kernel(groups: list[torch.Tensor], floor: float) -> Mixture:
    """Put one component on each sample: a kernel density with Gaussian kernels.

    The bandwidth in each dimension is the deviation within the sample's class times Scott's factor
    n^(−1/(d+4)), n being the class's samples. Classes weigh by their samples.

    Args:
        groups: As of `fit_classes`.
        floor: Smallest variance of a class in a dimension, before Scott's factor.
    """
    dimensions = groups[0].shape[1]
    variances = [
        g.var(0, correction=0).clamp_min(floor) * len(g) ** (-2 / (dimensions + 4)) for g in groups
    ]
    spread = [v.expand(len(g), dimensions) for v, g in zip(variances, groups, strict=True)]
    return Mixture(torch.cat(groups), torch.cat(spread))


def by_class(logits: torch.Tensor, labels: torch.Tensor) -> list[torch.Tensor]:
    """Return the logits of each class with two samples or more, float64 (n_k, classes).

    A class with fewer has no variance: it has no component, and the others share its weight.

    Args:
        logits: A client's, on its held-out samples, (n, classes).
        labels: Their true classes, (n,).
    """
    groups = [logits.double()[labels == c] for c in labels.unique()]
    return [group for group in groups if len(group) >= 2]


def largest_variance(logits: torch.Tensor) -> float:
    """Return the variance of the logit that varies most over samples, (n, classes); 0 without any.

    A network whose hidden units have died has the same logits everywhere. Its variances are then
    the floor, its logits on any public sample are their mean, and it gets nearly all weight.
    """
    return float(logits.double().var(0, correction=0).max()) if len(logits) else 0.0


def no_density(logits: torch.Tensor) -> Mixture:
    """Return a mixture without components, whose client gets no weight; see `density_weights`.

    Args:
        logits: For the number of classes and the device.
    """
    none = logits.new_empty(0, logits.shape[1], dtype=torch.float64)
    return Mixture(none, none)


def fit_em(logits: torch.Tensor, components: int, floor: float, seed: int) -> Mixture:
    """Fit the components by expectation-maximisation, without labels; weights become 1/k.

    Args:
        logits: (n, classes).
        components: Number of components, the client's number of classes; at most n are fitted.
        floor: Smallest variance, as of `fit_classes`. While fitting, it is added to all variances,
            which keeps a component from collapsing onto one sample; from the result it is taken.
        seed: Of the k-means start.

    Returns:
        The mixture, without components if there are fewer than two samples.

    Raises:
        Diverged: if logits are so large that a variance of theirs is lost in rounding.
    """
    if len(logits) < 2:
        return no_density(logits)
    from sklearn.mixture import GaussianMixture  # takes a second to import

    model = GaussianMixture(
        min(components, len(logits)), covariance_type="diag", reg_covar=floor, random_state=seed
    )
    try:
        model.fit(logits.double().cpu().numpy())
    except ValueError as error:
        if "ill-defined empirical covariance" not in str(error):
            raise
        raise Diverged(
            f"no mixture can be fitted to logits as large as {float(logits.abs().max()):.1e}"
        ) from None
    means = torch.as_tensor(model.means_, device=logits.device)
    variances = torch.as_tensor(model.covariances_ - floor, device=logits.device)
    return Mixture(means, variances.clamp_min(floor))


def density_weights(densities: torch.Tensor) -> torch.Tensor:
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
