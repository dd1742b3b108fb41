"""Second version of CGSV (Xu et al. 2021). It follows the authors' main.py and utils/utils.py,
except that initial weights are 1/N and a full reward is the whole layer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil, tanh

import torch
from oracles.world import World, perceptron, tested, trained


def rounds(
    world: World,
    norm: float = 0.15,
    normalise: str = "always",
    smoothing: float = 0.95,
    altruism: float = 1.0,
    restore: bool = True,
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    n = len(world.clients)
    w_g = world.first_server
    own = [w_g.clone() for _ in world.clients]
    rep, weights = [0.0] * n, [1 / n] * n
    sizes = [m for a, b in pairwise(world.units[0]) for m in (a * b, b)]  # W, b, layer by layer
    r = 0
    while True:
        r += 1
        gradients = []
        for i in world.clients:
            model = trained(world, i, r, own[i])
            gradient = model - own[i]
            own[i] = own[i] if restore else model
            length = float(gradient.norm())
            if normalise == "always" or length > norm:
                gradient = gradient * norm / (length + 1e-7)
            gradients.append(gradient)
        u = sum(w_i * g for w_i, g in zip(weights, gradients, strict=True))
        w_g = w_g + u
        cosines = [
            float(g.double() @ u.double() / (g.double().norm() * u.double().norm()))
            for g in gradients
        ]
        rep = [
            max(1e-3, smoothing * old + (1 - smoothing) * new)
            for old, new in zip(rep, cosines, strict=True)
        ]
        rep = weights = [x / sum(rep) for x in rep]
        most = max(tanh(altruism * x) for x in rep)
        entries = 0
        for i in world.clients:
            rewards = []
            for part in u.split(sizes):
                kept = ceil(tanh(altruism * rep[i]) / most * len(part))
                least = sorted(part.abs().tolist(), reverse=True)[kept - 1]
                rewards.append(torch.where(part.abs() >= least, part, 0.0))
                entries += max(kept, int((rewards[-1] != 0).sum()))
            own[i] = own[i] + torch.cat(rewards)
        yield {
            "server": w_g,
            "clients": torch.cat(own),
            "contributions": rep,
            "bytes_up": 4 * len(w_g) * n,
            "bytes_down": 8 * entries,
            **tested(world, perceptron(world.units[0], w_g)),
        }
