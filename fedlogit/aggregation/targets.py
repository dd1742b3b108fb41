"""What an aggregator gives a student model: a distribution for each public sample, and a weight."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from fedlogit.errors import FedlogitError

__all__ = ["Targets", "as_distributions", "as_targets", "one_hot_targets", "soften"]

_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Targets:
    """Soft targets with a weight per sample.

    Attributes:
        distributions: (points, classes), or (points, T, classes), float32; each row sums to 1.
        weights: How much each sample counts in the mean loss, (points,), float32; 1 is usual, and
            0 is a sample that nobody has anything to say about.
    """

    distributions: torch.Tensor
    weights: torch.Tensor

    def weighted(self) -> torch.Tensor:
        """Return weight times distribution, in the shape of the distributions.

        The cross-entropy with it has the gradient of weight times KL(distribution ‖ student).
        """
        others = self.distributions.dim() - 1
        return self.distributions * self.weights.view(-1, *[1] * others)


def one_hot_targets(labels: torch.Tensor, classes: int) -> Targets:
    """Return one-hot targets; a label of -1 is a sample without a vote, with weight 0.

    Args:
        labels: int64 (points,).
        classes: Number of classes.
    """
    known = labels >= 0
    distributions = F.one_hot(labels.clamp_min(0), classes).float()
    uniform = torch.full_like(distributions, 1 / classes)
    return Targets(torch.where(known[:, None], distributions, uniform), known.float())


def soften(targets: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the distributions softmax(z / T), where targets are softmax(z) (Hinton et al. 2015).

    Of probabilities p that is p^(1/T), scaled to sum to 1, or softmax(log(p) / T). So a probability
    of 0 stays 0, and a hard label stays hard.

    Args:
        targets: Distributions, (…, classes). A row keeps its sum, if that is not 1.
        temperature: T; above 1 a distribution becomes flatter, and 1 changes nothing.
    """
    if temperature == 1:
        return targets
    weights = targets.sum(-1, keepdim=True, dtype=torch.float64)
    softened = torch.softmax(targets.double().log() / temperature, -1)
    # A row of zeros, which nobody is to learn, has no logarithm.
    return torch.where(weights > 0, weights * softened, 0.0).to(targets.dtype)


def as_distributions(found: object, logits: torch.Tensor, who: str) -> torch.Tensor:
    """Return what a method made of logits, if every row of it may be a soft target.

    Args:
        found: Non-negative numbers like one client's logits; rows of another sum than 1 weigh as
            much.
        logits: What it was given, (clients, points, classes), or (clients, points, T, classes).
        who: The method's name, for the message.

    Raises:
        FedlogitError: if it is no tensor, has another shape or device, or a value is negative or
            not finite.
    """
    wanted = tuple(logits.shape[1:])
    if not isinstance(found, torch.Tensor) or tuple(found.shape) != wanted:
        shape = f" of shape {tuple(found.shape)}" if isinstance(found, torch.Tensor) else ""
        raise FedlogitError(
            f"method {who}: aggregate returned a {type(found).__name__}{shape}; give a tensor of"
            f" shape {wanted}"
        )
    if found.device != logits.device:
        raise FedlogitError(
            f"method {who}: aggregate returned a tensor on {found.device}; give one on"
            f" {logits.device}, as the logits are"
        )
    if not (torch.isfinite(found) & (found >= 0)).all():
        raise FedlogitError(
            f"method {who}: aggregate returned numbers that are negative or not finite, and no"
            " distributions; take a softmax of logits"
        )
    return found


def as_targets(found: Targets | torch.Tensor, logits: torch.Tensor, who: str) -> Targets:
    """Return what an aggregator gave as targets, if that is what it is.

    Args:
        found: `Targets`, or distributions alone, which then all count 1.
        logits: What it was given, (clients, points, classes), or (clients, points, T, classes).
        who: The aggregator's name, for the message.

    Raises:
        FedlogitError: if the shape or device is wrong, a value is not finite or negative, or a row
            does not sum to 1.
    """
    wanted = tuple(logits.shape[1:])
    if isinstance(found, torch.Tensor):
        found = Targets(found, torch.ones(found.shape[:1], device=found.device))
    if not isinstance(found, Targets):
        raise FedlogitError(
            f"aggregator {who} returned {type(found).__name__}; give a tensor (points, classes)"
        )
    for part in ("distributions", "weights"):
        if not isinstance(getattr(found, part), torch.Tensor):
            raise FedlogitError(
                f"aggregator {who} returned Targets whose {part} are"
                f" {type(getattr(found, part)).__name__}; give a tensor, or distributions alone"
            )
        if (device := getattr(found, part).device) != logits.device:
            raise FedlogitError(
                f"aggregator {who} returned {part} on {device}; give them on {logits.device}, as"
                " the logits are"
            )
    rows, weights = found.distributions.float(), found.weights.float()
    if tuple(rows.shape) != wanted or tuple(weights.shape) != wanted[:1]:
        raise FedlogitError(
            f"aggregator {who} returned shape {tuple(rows.shape)} with {tuple(weights.shape)}"
            f" weights; the logits ask for {wanted}"
        )
    sums = rows.sum(-1, keepdim=True).flatten(1)  # of each of a sample's positions
    bad = ~torch.isfinite(rows).flatten(1).all(1) | (rows < 0).flatten(1).any(1)
    bad |= ~((sums - 1).abs() <= _TOLERANCE).all(1) | ~torch.isfinite(weights) | (weights < 0)
    if bad.any():
        first = int(bad.nonzero()[0])
        farthest = sums[first][(sums[first] - 1).abs().argmax()]
        raise FedlogitError(
            f"aggregator {who} returned no distribution for public sample {first}:"
            f" smallest {float(rows[first].min()):.4g}, sum {float(farthest):.4g},"
            f" weight {float(weights[first]):.4g}"
        )
    return Targets(rows, weights)
