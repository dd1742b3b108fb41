"""Pseudo-labels by positive and negative votes (FedOL §IV-B, eq. 10-13, Algorithm 1)."""

from __future__ import annotations

import math

import torch

from fedlogit.aggregation.confidence import entropies

__all__ = ["PSEUDO_NONE", "entropy_baselines", "pseudo_labels", "votes"]

PSEUDO_NONE = -1
_EPSILON = 1e-12


def entropy_baselines(uncertainty: torch.Tensor, ratio: float) -> torch.Tensor:
    """Return H̃_m, the ⌈ρ N_u⌉-th smallest entropy of each model (Algorithm 1, line 3).

    Args:
        uncertainty: Entropies (models, points).
        ratio: ρ, in (0, 1]; 1 lets every model vote on every sample.

    Returns:
        (models,).
    """
    points = uncertainty.shape[1]
    rank = min(max(math.ceil(ratio * points - 1e-9), 1), points)
    return uncertainty.kthvalue(rank, dim=1).values


def votes(
    predicted: torch.Tensor, voters: torch.Tensor, confidence: torch.Tensor, *, negative: bool
) -> torch.Tensor:
    """Return G(x) of eq. 13 for every sample and class.

    With C² a model's weight in a class, and y_m = +1 in the class it predicts and -1 elsewhere,
    G_c = Σ_m C²_mc y_mc / Σ_m C²_mc over voters: a model rejects the classes that it does not
    predict, and weighs most in those that it knows. It equals 2 P_c - 1, where P_c is the share of
    weight in class c that voted for c.

    Args:
        predicted: argmax of each model, int64 (models, points).
        voters: Who may vote on what, bool (models, points).
        confidence: C², (models, classes).
        negative: Count rejections. Off, G_c is the plain sum of the weights that voted for c:
            dividing by Σ_m C²_mc is how rejections count, so without them there is no division.

    Returns:
        (points, classes), float64; in [-1, 1] with `negative`. Meaningless where nobody votes.
    """
    models, classes = confidence.shape
    weight = confidence.double()
    for_it = weight.new_zeros(predicted.shape[1], classes)
    in_all = weight.new_zeros(predicted.shape[1], classes)
    for m in range(models):  # a model at a time: (models, points, classes) need not fit memory
        allowed = voters[m].double()
        own = weight[m][predicted[m]] * allowed
        for_it.scatter_add_(1, predicted[m][:, None], own[:, None])
        in_all += allowed[:, None] * weight[m]
    if not negative:
        return for_it
    return (2 * for_it - in_all) / (in_all + _EPSILON)


def pseudo_labels(
    logits: torch.Tensor,
    confidence: torch.Tensor,
    ratio: float,
    *,
    negative: bool = True,
) -> torch.Tensor:
    """Return ŷ(x) of Algorithm 1.

    Args:
        logits: Of all source models, (models, points, classes).
        confidence: C², (models, classes).
        ratio: ρ, the share of samples that each model may vote on.
        negative: See `votes`.

    Returns:
        int64 (points,): the class with the largest G, the lowest one of a tie, and `PSEUDO_NONE`
        where no model is confident enough to vote.
    """
    uncertainty = entropies(logits)
    voters = uncertainty <= entropy_baselines(uncertainty, ratio)[:, None]
    score = votes(logits.argmax(-1), voters, confidence, negative=negative)
    chosen = score.argmax(1)
    return torch.where(voters.any(0), chosen, torch.full_like(chosen, PSEUDO_NONE))
