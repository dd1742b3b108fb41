"""What TallyTrain §3.3 proves, measured in a run: Lemma 1, Propositions 1 and 2.

It reads models and changes nothing; what is random has addresses of its own. True labels of probes
are used here for diagnostics only.
"""

from __future__ import annotations

import math

import torch

from fedlogit.aggregation.average import average_probabilities
from fedlogit.aggregation.votes import margin, tally
from fedlogit.data import UNKNOWN
from fedlogit.federation import Federation
from fedlogit.methods.gradient_variance import gradient_variance

__all__ = ["condorcet", "correlation", "disagreement", "measure"]

# Public samples on which peers are compared, the same in all rounds. A forward pass takes 500, so
# models that normalise by the batch see the last 12 by themselves.
_PROBES = 512
_BATCHES = 8  # draws of probes over which a gradient's variance is taken


def measure(fed: Federation, probes_per_round: int) -> dict[str, float]:
    """Return this round's columns of ``rounds.csv``.

    ``theory_disagreement``: mean over pairs of peers of KL(f_n ‖ f_m) (Lemma 1).
    ``theory_peer_accuracy``, ``theory_peer_least``: mean and least accuracy of the peers on probes;
    ``theory_vote_accuracy``, ``theory_soft_accuracy``: of their tally and of their mean softmax;
    ``theory_bound``: Proposition 1's, from the least; ``theory_correlation``: how far from
    independent they are (0). ``theory_variance_hard``, ``theory_variance_soft``: Proposition 2's,
    over draws of as many probes as a round has; ``theory_margin``: the tally's mean margin.

    Accuracies are left out where nobody knows the probes' labels.
    """
    points = _compared_samples(fed)
    logits = fed.logits(points)
    votes = logits.argmax(-1)
    hard, soft = tally(votes, fed.classes), average_probabilities(logits)
    columns = {"disagreement": disagreement(logits), "margin": float(margin(hard).mean())}
    columns |= _accuracies(fed, points, logits, hard, soft)
    columns |= _variances(fed, points, hard, soft, probes_per_round)
    return {f"theory_{name}": value for name, value in columns.items()}


def condorcet(least: float, peers: int) -> float:
    """Return 1 - exp(-2 N (p - 1/2)²), or NaN for p ≤ 1/2, of which Proposition 1 says nothing."""
    return 1 - math.exp(-2 * peers * (least - 0.5) ** 2) if least > 0.5 else math.nan


def disagreement(logits: torch.Tensor) -> float:
    """Return the mean over ordered pairs of peers and over probes of KL(f_n ‖ f_m), in nats.

    Args:
        logits: (peers, probes, classes).
    """
    logs = logits.double().log_softmax(-1)
    cross = torch.einsum("npc,mpc->nm", logs.exp(), logs) / logs.shape[1]
    apart = cross.diagonal()[:, None] - cross
    return float(apart.sum() / max(1, len(logs) * (len(logs) - 1)))


def correlation(right: torch.Tensor) -> float:
    """Return the mean correlation over pairs of peers of being right; 0 if they are independent.

    Args:
        right: bool (peers, probes). Peers that are always right, or always wrong, have none.
    """
    varied = right[right.any(1) & ~right.all(1)].double()
    if len(varied) < 2:
        return math.nan
    table = torch.corrcoef(varied)
    return float((table.sum() - table.trace()) / (len(table) * (len(table) - 1)))


def _compared_samples(fed: Federation) -> torch.Tensor:
    """Return up to 512 public samples, the same in all rounds."""
    size = min(_PROBES, len(fed.public))
    chosen = fed.rng("theory").choice(len(fed.public), size, replace=False)
    return fed.public[torch.as_tensor(chosen, device=fed.public.device)]


def _accuracies(
    fed: Federation, points: torch.Tensor, logits: torch.Tensor, *consensus: torch.Tensor
) -> dict[str, float]:
    each = fed.accuracy(logits, points)
    if each.isnan().any():
        return {}
    vote, soft = (float(fed.accuracy(one, points)) for one in consensus)
    least = float(each.min())
    labels = fed.labels(points)
    known = labels != UNKNOWN
    return {
        "peer_accuracy": float(each.mean()),
        "peer_least": least,
        "vote_accuracy": vote,
        "soft_accuracy": soft,
        "bound": condorcet(least, len(each)),
        "correlation": correlation((logits.argmax(-1) == labels)[:, known]),
    }


def _variances(
    fed: Federation, points: torch.Tensor, hard: torch.Tensor, soft: torch.Tensor, size: int
) -> dict[str, float]:
    """Return the variances of gradients of hard and soft targets on the same probes."""
    generator = fed.rng("theory", fed.round)
    size = min(size, len(points))
    drawn = [
        torch.as_tensor(generator.choice(len(points), size, replace=False), device=points.device)
        for _ in range(_BATCHES)
    ]
    batches = [fed.data.inputs(points[at]) for at in drawn]
    targets = [[hard[at] for at in drawn], [soft[at] for at in drawn]]
    found = torch.tensor(
        fed.for_each(fed.clients, lambda client: gradient_variance(client, batches, targets)),
        dtype=torch.float64,
    )
    return {
        "variance_hard": float(found[:, 0].mean()),
        "variance_soft": float(found[:, 1].mean()),
    }
