"""A normalising flow for a client's logits: a density without the assumption of Gaussians.

Not the paper's; to see whether its diagonal Gaussians are right. Logits of a class are standardised
by that class's means and deviations, and a masked autoregressive flow (Papamakarios et al. 2017),
conditioned on the class, takes them to a standard normal. It starts as the identity, which is the
paper's density (Who to Trust §3.1.3, eq. 5), and is then trained by maximum likelihood. A client
has few held-out samples, of which a fifth says when to stop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fedlogit.errors import missing_package
from fedlogit.models.init import Uninitialised, uniform_layer
from fedlogit.optimizers import Adam

__all__ = ["ClassFlow", "fit_flow"]

TRANSFORMS = 2
HIDDEN = (32, 32)
LEARNING_RATE = 1e-3
STEPS = 200
STOPPING = 5  # every fifth sample of a class is for stopping


@dataclass(frozen=True)
class ClassFlow:
    """Densities of classes with uniform weights 1/k.

    Attributes:
        means: Of each class, (k, classes), float64.
        deviations: The same shape, positive.
        flow: Takes a one-hot class, (…, k), to the density of standardised logits.
    """

    means: torch.Tensor
    deviations: torch.Tensor
    flow: nn.Module

    def log_density(self, logits: torch.Tensor) -> torch.Tensor:
        """Return log (1/k) Σ_k p(f | k) at each row of (points, classes), float64 (points,)."""
        k = len(self.means)
        standard = (logits.double()[:, None] - self.means) / self.deviations
        classes = torch.eye(k, dtype=torch.float64, device=logits.device)
        with torch.no_grad():
            each = self.flow(classes).log_prob(standard) - self.deviations.log().sum(1)
        return torch.logsumexp(each, 1) - math.log(k)


def fit_flow(
    groups: list[torch.Tensor], floor: float, generator: torch.Generator, steps: int = STEPS
) -> ClassFlow:
    """Fit a flow to the logits of each class by full-batch Adam, with early stopping.

    Means and deviations are of all samples. The flow is trained on four fifths of them, and left as
    it was when the others were most likely, which may be before the first step.

    Args:
        groups: Logits of one class or more, each on two held-out samples or more, float64
            (n_k, classes).
        floor: Smallest variance of a class in a dimension, in squared logits.
        generator: Draws first weights, on the CPU.
        steps: Of Adam, at most; 0 leaves the paper's diagonal Gaussians.
    """
    means = torch.stack([g.mean(0) for g in groups])
    deviations = torch.stack([g.var(0, correction=0) for g in groups]).clamp_min(floor).sqrt()
    labels = torch.cat([torch.full((len(g),), i) for i, g in enumerate(groups)]).to(means.device)
    standard = (torch.cat(groups) - means[labels]) / deviations[labels]
    context = F.one_hot(labels, len(groups)).double()
    kept = torch.cat([torch.arange(len(g)) % STOPPING == STOPPING - 1 for g in groups])
    flow = _identity_flow(means.shape[1], len(groups), generator).to(means.device)
    _train(flow, standard, context, kept.to(means.device), steps)
    return ClassFlow(means, deviations, flow)


def _train(
    flow: nn.Module, x: torch.Tensor, context: torch.Tensor, kept: torch.Tensor, steps: int
) -> None:
    """Maximise the likelihood of samples not kept; go back to where that of the kept was best."""
    optimizer = Adam(flow.parameters(), lr=LEARNING_RATE)
    best, weights = -math.inf, parameters_to_vector(flow.parameters()).detach()
    for _ in range(steps + 1 if kept.any() else 0):
        each = flow(context).log_prob(x)
        if (likelihood := each.detach()[kept].mean().item()) > best:
            best, weights = likelihood, parameters_to_vector(flow.parameters()).detach()
        optimizer.zero_grad()
        (-each[~kept].mean()).backward()
        optimizer.step()
    vector_to_parameters(weights, flow.parameters())


def _identity_flow(features: int, context: int, generator: torch.Generator) -> nn.Module:
    """Return a flow that changes nothing yet: last layers are 0, the others drawn."""
    try:
        from zuko.flows import MAF
    except ModuleNotFoundError as error:
        raise missing_package(error, "uwa(fit='flow')", "pip install zuko", "zuko") from None
    with Uninitialised():
        flow = MAF(features, context, transforms=TRANSFORMS, hidden_features=HIDDEN).double()
    for network in (part for part in flow.modules() if isinstance(part, nn.Sequential)):
        *hidden, _ = (layer for layer in network if isinstance(layer, nn.Linear))
        for layer in hidden:
            uniform_layer(layer, generator)
    return flow
