"""FedOL, a second time (§III-IV, Algorithm 1, eq. 7-14), in the notation of the paper.

No code of it is public. "50 epochs" are of each iteration, from the weights of the one before and
with a new optimizer. The label is the argmax over classes that some model voted for, the lowest of a
tie. Without negative votes, G is Σ C² of those who vote for a class, and is not divided.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import torch
from oracles.world import World
from scipy.special import entr, softmax


def pseudo_labels(p: np.ndarray, rho: float, negative: bool, votes: str) -> list[int | None]:
    """Algorithm 1, from predictions (models, points, classes); None is the vector 0."""
    models, points, classes = p.shape
    c2 = [p[m].mean(0) if votes == "confidence" else np.ones(classes) for m in range(models)]
    entropy = entr(p).sum(2)
    rank = ceil(round(rho * points, 9))  # 0.15 · 20 is 3
    baseline = [sorted(entropy[m])[rank - 1] for m in range(models)]
    labels: list[int | None] = []
    for x in range(points):
        reliable = [m for m in range(models) if entropy[m, x] <= baseline[m]]
        best, label = -np.inf, None
        for c in sorted({int(p[m, x].argmax()) for m in reliable}):
            up = sum(c2[m][c] for m in reliable if p[m, x].argmax() == c)
            down = sum(c2[m][c] for m in reliable if p[m, x].argmax() != c)
            g = (up - down) / (up + down) if negative else up
            if g > best:
                best, label = g, c
        labels.append(label)
    return labels


def lesson(
    world: World,
    server: Any,
    z: torch.Tensor,
    r: int,
    augment: bool,
    iterations: int = 10,
    trade_off: float = 0.2,
    first_ratio: float = 0.1,
    ratio_step: float = 0.05,
    negative: bool = True,
    votes: str = "confidence",
    mixture: str = "entropy",
    curriculum: bool = True,
) -> dict[str, object]:
    """Alternate T_it times between pseudo-labels and the server's training (eq. 7)."""
    x, truth, noted = world.x[world.public], world.y[world.public].numpy(), {}
    p = softmax(z.double().numpy(), axis=2)
    lam = (
        softmax(-entr(p).sum(2), axis=0)
        if mixture == "entropy"
        else np.full(p.shape[:2], 1 / len(p))
    )
    p_k, lam_k, sources = torch.as_tensor(p), torch.as_tensor(lam), p
    for t in range(1, iterations + 1):
        rho = min(1.0, first_ratio + ratio_step * ((t if curriculum else iterations) - 1))
        labels = pseudo_labels(sources, rho, negative, votes)
        hot = torch.zeros(p.shape[1:])
        for n, label in enumerate(labels):
            if label is not None:
                hot[n, label] = 1
        optimizer = world.server_optimizer(server.parameters())
        change = world.crops("augment/teach", r, t, on=augment)
        for b in world.server_batches(r, t, len(x)):
            log_q = server(change(x[b])).log_softmax(1)
            kl = (p_k[:, b] * (p_k[:, b].log() - log_q)).sum(2)
            loss = (lam_k[:, b] * kl).sum(0).mean() - trade_off * (hot[b] * log_q).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        said = server(x).detach()
        sources = np.concatenate([p, softmax(said.double().numpy(), axis=1)[None]])
        known = [n for n, label in enumerate(labels) if label is not None]
        noted[f"pseudo_share_{t}"] = len(known) / len(x)
        noted[f"pseudo_accuracy_{t}"] = np.mean([labels[n] == truth[n] for n in known])
        noted[f"server_public_accuracy_{t}"] = np.mean(said.argmax(1).numpy() == truth)
    return noted
