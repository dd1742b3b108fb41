"""One hard label a sample: the most certain client's, or a consistent vote of students."""

from __future__ import annotations

import torch

from fedlogit.aggregation.confidence import entropies
from fedlogit.aggregation.votes import vote_counts

__all__ = ["consistent_votes", "least_entropy", "majority"]


def least_entropy(logits: torch.Tensor) -> torch.Tensor:
    """Return argmax p_k*(x) with k*(x) = argmin_k H(p_k(x)) (MinE, FedOL §V-A).

    Args:
        logits: (clients, points, classes).

    Returns:
        int64 (points,); the first client of a tie.
    """
    surest = entropies(logits).argmin(0)
    return logits.argmax(-1).gather(0, surest[None])[0]


def majority(predicted: torch.Tensor, classes: int) -> torch.Tensor:
    """Return the class with most votes, the lowest of a tie (FedKT's max-vote of teachers).

    Args:
        predicted: int64 (voters, points).
        classes: Number of classes.
    """
    return vote_counts(predicted, classes).argmax(1)


def consistent_votes(predicted: torch.Tensor, classes: int, *, consistent: bool) -> torch.Tensor:
    """Return the class that most parties' students agree on (FedKT, Li et al. 2021, §4.2).

    A party has s students. It casts s votes for a class if all of them name it, and none otherwise.

    Args:
        predicted: int64 (parties, students, points).
        classes: Number of classes.
        consistent: Require agreement within a party; off, every student's vote counts, as in the
            public code, where the check is commented out.

    Returns:
        int64 (points,); -1 where nobody votes.
    """
    parties, _, points = predicted.shape
    agree = (predicted == predicted[:, :1]).all(1) if consistent else None
    counts = torch.zeros(points, classes, dtype=torch.int64, device=predicted.device)
    for party in range(parties):
        own = vote_counts(predicted[party], classes)
        counts += own if agree is None else own * agree[party][:, None]
    return torch.where(counts.sum(1) > 0, counts.argmax(1), torch.full_like(counts[:, 0], -1))
