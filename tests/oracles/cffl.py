"""Second version of CFFL (Lyu et al. 2020). `feedback`, `removal` and `sparse` follow the
authors' pytorch/utils/Federated_Learner.py, the single global model CELM §5."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import torch
from oracles.world import World, accuracy, perceptron, tested, trained


def rounds(
    world: World,
    alpha: float = 5.0,
    smoothing: float = 0.8,
    server_weights: str = "reputation",
    feedback: bool = False,
    removal: bool = False,
    sparse: bool = False,
    clip: float = 1e-2,
    upload: float = 0.1,
    scored_on: str = "union",
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    n = len(world.clients)
    w_g = world.first_server
    held = torch.cat(list(world.validation))
    reputable, rep = np.ones(n), np.zeros(n)  # 1 is reputable, 0 is removed for good
    for r in count(1):
        sent, size, scores = [], 0, []
        for i in world.clients:
            update = trained(world, i, r, w_g) - w_g
            if sparse:
                update = update.clamp(-clip, clip)
                kept = max(1, int(upload * len(update)))
                least = sorted(update.abs().tolist(), reverse=True)[kept - 1]
                update[update.abs() < least] = 0  # all that are as large as the last one stay
            sent.append(update)
            # A value and an index each where sparse; zeros may be among the largest.
            size += 8 * max(kept, int((update != 0).sum())) if sparse else 4 * len(update)
            scored = perceptron(world.units[i], w_g + update)
            judges = held if scored_on == "union" else world.validation[i]
            scores.append(accuracy(scored, world.x[judges], world.y[judges]))
        share = _shared(reputable * scores)
        if feedback:
            rep = _shared(np.sinh(alpha * (smoothing * rep + (1 - smoothing) * share)))
        else:
            new = _shared(np.sinh(alpha * share))
            rep = new if r == 1 else smoothing * rep + (1 - smoothing) * new
        if removal:
            reputable = reputable * (rep >= 1 / (3 * reputable.sum()))
            rep = _shared(reputable * rep)
        even = reputable if server_weights == "sum" else _shared(reputable)
        weights = rep if server_weights.startswith("reputation") else even
        if server_weights == "reputation_samples":
            weights = _shared(rep * [len(world.private[i]) for i in world.clients])
        w_g = w_g + sum(c * update for c, update in zip(weights.tolist(), sent, strict=True))
        yield {
            "server": w_g,
            "contributions": rep,
            "memory/cffl/reputable": reputable,
            "bytes_up": size,
            "bytes_down": 4 * len(w_g) * n,
            **tested(world, perceptron(world.units[0], w_g)),
        }


def _shared(values: np.ndarray) -> np.ndarray:
    return values / values.sum()
