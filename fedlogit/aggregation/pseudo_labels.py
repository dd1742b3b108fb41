"""Pseudo-labels by positive and negative votes (FedOL §IV-B, eq. 10-13, Algorithm 1)."""

from __future__ import annotations

import math

import torch

from fedlogit.aggregation.confidence import entropies

__all__ = ["NO_PSEUDO_LABEL", "entropy_baselines", "pseudo_labels", "weighted_votes"]

NO_PSEUDO_LABEL = -1


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


def weighted_votes(
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
        (points, classes), float64; in [-1, 1] with `negative`, where it is -1 for a class that
        nobody votes for, also if Σ_m C²_mc is 0. Meaningless where nobody votes at all.
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
    return torch.where(in_all > 0, (2 * for_it - in_all) / in_all, -1.0)


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
        negative: See `weighted_votes`.

    Returns:
        int64 (points,): of the classes that some model votes for, the one with the largest G, the
        lowest of a tie; `NO_PSEUDO_LABEL` where no model is confident enough to vote.
    """
    uncertainty = entropies(logits)
    voters = uncertainty <= entropy_baselines(uncertainty, ratio)[:, None]
    predicted = logits.argmax(-1)
    score = weighted_votes(predicted, voters, confidence, negative=negative)
    # G of a class with next to no weight is -1 to the last bit, as that of one without a vote.
    chosen = score.masked_fill(~_voted(predicted, voters, score.shape[1]), -math.inf).argmax(1)
    return torch.where(voters.any(0), chosen, torch.full_like(chosen, NO_PSEUDO_LABEL))


def _voted(predicted: torch.Tensor, voters: torch.Tensor, classes: int) -> torch.Tensor:
    """Return the classes that some voter predicts, bool (points, classes)."""
    counts = torch.zeros(predicted.shape[1], classes, dtype=torch.int64, device=predicted.device)
    return counts.scatter_add_(1, predicted.T, voters.T.to(counts.dtype)) > 0
