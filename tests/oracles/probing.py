"""TallyTrain's public step: which probes, the loss on them, and what is noted of the votes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from oracles.world import World, cross_entropy

__all__ = ["drawn", "lead", "loss", "noted"]


def drawn(world: World, r: int, size: int, anchors: int) -> torch.Tensor:
    """Return a round's probes: of arm C (appendix K) so many anchors, whose labels are known."""
    if not anchors:
        return world.probes(r, size)
    numbers, known = world.numbers("probes", r), world.y[world.public] >= 0
    parts = ((world.public[known], anchors), (world.public[~known], size - anchors))
    return torch.cat([pool[numbers.choice(len(pool), m, replace=False)] for pool, m in parts])


def loss(
    f: torch.Tensor, y: torch.Tensor, alpha: float, weight: float, h: Any, stress: Any
) -> torch.Tensor:
    """Return α CE(f, y) over known labels, and λ (1 - α) KL(H ‖ f), each probe times its stress."""
    total = alpha * cross_entropy(f[y >= 0], y[y >= 0]) if alpha else torch.zeros(())
    if h is not None:
        h = torch.tensor(h, dtype=torch.float32)
        kl = (torch.xlogy(h, h) - h * f.log_softmax(1)).sum(1)
        total = total + weight * (1 - alpha) * (stress * kl).mean()
    return total


def lead(consensus: np.ndarray) -> float:
    """Return by how much the first class leads the second, mean over probes."""
    ranked = np.sort(consensus, -1)
    return float((ranked[..., -1] - ranked[..., -2]).mean())


def noted(votes: np.ndarray, consensus: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """Return how often a vote is the most frequent one, and how often the consensus is right."""
    first = [np.bincount(column).argmax() for column in votes.T]
    right = (consensus.argmax(-1) == y)[:, y >= 0]
    known = {"consensus_accuracy": right.mean()} if right.size else {}
    return {"agreement": (votes == first).mean()} | known
