"""CFFL, a second time (Lyu et al. 2020; the authors' pytorch/utils/Federated_Learner.py decides
what `feedback`, `removal` and `sparse` do, CELM §5 that there is one global model)."""

from __future__ import annotations

from collections.abc import Iterator
from math import sinh

import torch
from oracles.world import World, accuracy, fit, perceptron, tested, vector


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
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    n = len(world.clients)
    w_g = world.first_server
    held = torch.cat(list(world.validation))
    reputable = set(world.clients)
    rep: list[float] = []
    r = 0
    while True:
        r += 1
        sent, size, scores = [], 0, []
        for i in world.clients:
            model = perceptron(world.units[i], w_g)
            mine = world.private[i]
            batches = world.batches("private", i, r, len(mine))
            fit(model, world.new_optimizer(model), world.x[mine], world.y[mine], batches)
            update = vector(model) - w_g
            if sparse:
                update = update.clamp(-clip, clip)
                kept = max(1, int(upload * len(update)))
                least = sorted(update.abs().tolist(), reverse=True)[kept - 1]
                update[update.abs() < least] = 0  # all that are as large as the last one stay
            sent.append(update)
            size += 8 * int((update != 0).sum()) if sparse else 4 * len(update)
            scored = perceptron(world.units[i], w_g + update)
            scores.append(accuracy(scored, world.x[held], world.y[held]))
        total = sum(scores[i] for i in reputable)
        share = [scores[i] / total if i in reputable else 0.0 for i in range(n)]
        if feedback:
            before = rep or [0.0] * n
            rep = [
                smoothing * old + (1 - smoothing) * s for old, s in zip(before, share, strict=True)
            ]
            rep = _shared([sinh(alpha * x) for x in rep])
        else:
            new = _shared([sinh(alpha * x) for x in share])
            rep = [
                smoothing * o + (1 - smoothing) * x for o, x in zip(rep or new, new, strict=True)
            ]
        if removal:
            least = 1 / (3 * len(reputable))
            reputable = {i for i in reputable if rep[i] >= least}
            rep = _shared([rep[i] if i in reputable else 0.0 for i in range(n)])
        even = 1.0 if server_weights == "sum" else 1 / len(reputable)
        weights = (
            rep if server_weights == "reputation" else [even * (i in reputable) for i in range(n)]
        )
        w_g = w_g + sum(c * update for c, update in zip(weights, sent, strict=True))
        yield {
            "server": w_g,
            "contributions": rep,
            "memory/cffl/reputable": [float(i in reputable) for i in range(n)],
            "bytes_up": size,
            "bytes_down": 4 * len(w_g) * n,
            **tested(world, perceptron(world.units[0], w_g)),
        }


def _shared(values: list[float]) -> list[float]:
    return [value / sum(values) for value in values]
