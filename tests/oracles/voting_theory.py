"""Second version of what TallyTrain's §3.3 proves, measured: Lemma 1, Propositions 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import torch
from oracles.world import World, cross_entropy
from torch import nn


def measure(
    world: World, models: Sequence[nn.Module], r: int, probes_per_round: int
) -> dict[str, float]:
    """Return the columns of a round, on up to 512 public samples, in all rounds the same."""
    size = min(512, len(world.public))
    points = world.public[world.numbers("theory").choice(len(world.public), size, replace=False)]
    x, y = world.x[points], world.y[points]
    with torch.no_grad():
        parts = [torch.cat([m(part) for part in x.split(500)]) for m in models]
    p = torch.stack(parts).double().softmax(2).numpy()
    n, _, classes = p.shape
    hard = np.mean([np.eye(classes)[p_n.argmax(1)] for p_n in p], 0)
    soft, first = p.mean(0), np.sort(hard, 1)
    pairs = list(permutations(range(n), 2))
    apart = [(p[i] * np.log(p[i] / p[j])).sum(1).mean() for i, j in pairs]
    columns = {"disagreement": np.mean(apart), "margin": (first[:, -1] - first[:, -2]).mean()}
    columns |= accuracies(p, hard, soft, y.numpy()) if (y >= 0).all() else {}
    numbers, found = world.numbers("theory", r), {"hard": [], "soft": []}
    drawn = [numbers.choice(size, min(probes_per_round, size), replace=False) for _ in range(8)]
    for model in models:
        for kind, target in (("hard", hard), ("soft", soft)):
            slopes = [slope(model, x[at], torch.tensor(target[at]).float()) for at in drawn]
            found[kind].append(np.var(slopes, 0, ddof=1).sum())
    columns |= {f"variance_{kind}": np.mean(values) for kind, values in found.items()}
    return {f"theory_{name}": float(value) for name, value in columns.items()}


def accuracies(p: np.ndarray, hard: np.ndarray, soft: np.ndarray, y: np.ndarray) -> dict:
    """Return who is right how often, Proposition 1's bound, and whether they err together."""
    right = p.argmax(2) == y
    least, varied = right.mean(1).min(), [row for row in right if 0 < row.mean() < 1]
    pairs = permutations(varied, 2)
    together = [np.corrcoef(a, b)[0, 1] for a, b in pairs]
    return {
        "peer_accuracy": right.mean(),
        "peer_least": least,
        "vote_accuracy": (hard.argmax(1) == y).mean(),
        "soft_accuracy": (soft.argmax(1) == y).mean(),
        "bound": 1 - math.exp(-2 * len(p) * (least - 0.5) ** 2) if least > 0.5 else math.nan,
        "correlation": np.mean(together) if together else math.nan,
    }


def slope(model: nn.Module, x: torch.Tensor, target: torch.Tensor) -> np.ndarray:
    """Return the gradient of the mean cross-entropy in all weights."""
    model.zero_grad()
    cross_entropy(model(x), target).backward()
    return torch.cat([w.grad.flatten() for w in model.parameters()]).double().numpy()
