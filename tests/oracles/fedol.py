"""Second version of FedOL (§III-IV, Algorithm 1, eq. 7-14), in the paper's notation.

No code of it is public. "50 epochs" are of each iteration, from the weights of the one before and
with a new optimizer. Algorithm 1 is in `pseudo_labels.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from oracles.one_shot import play
from oracles.pseudo_labels import pseudo_labels
from oracles.world import World
from scipy.special import entr, softmax
from torch import nn


def lesson(
    world: World,
    server: nn.Module,
    z: torch.Tensor,
    r: int,
    iterations: int = 10,
    trade_off: float = 0.2,
    first_ratio: float = 0.1,
    ratio_step: float = 0.05,
    negative: bool = True,
    votes: str = "confidence",
    mixture: str = "entropy",
    curriculum: bool = True,
) -> dict[str, object]:
    """Alternate `iterations` times between pseudo-labels and the server's training (eq. 7)."""
    x, truth, noted = world.x[world.public], world.y[world.public].numpy(), {}
    p = softmax(z.double().numpy(), axis=2)
    sure = -entr(p).sum(2) if mixture == "entropy" else np.zeros(p.shape[:2])
    p_k, lam_k, sources = torch.as_tensor(p), torch.as_tensor(softmax(sure, axis=0)), p
    for t in range(1, iterations + 1):
        rho = min(1.0, first_ratio + ratio_step * ((t if curriculum else iterations) - 1))
        labels = pseudo_labels(sources, rho, negative, votes)
        hot = torch.zeros(p.shape[1:])
        for n, label in enumerate(labels):
            if label is not None:
                hot[n, label] = 1
        optimizer = world.new_optimizer(server, world.server_optimizer)
        change = world.crops("augment/teach", r, t)
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


def rounds(world: World, **switches: Any) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round; in each, the first iteration has no server."""
    return play(world, lesson, **switches)
