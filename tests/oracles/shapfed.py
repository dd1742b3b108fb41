"""Second version of ShapFed (Tastan et al. 2024). It follows the authors' main_cifar10.py, except
that by default cosines are mapped to (1 + cos) / 2 and w_g is sent unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from oracles.world import World, perceptron, tested, trained


def rounds(
    world: World, smoothing: float = 0.9, cosine: str = "half", rewards: bool = False
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    n = len(world.clients)
    w_g = world.first_server
    own = [w_g.clone() for _ in world.clients]
    weights = [1 / n] * n
    gamma: list[float] = []
    r = 0
    while True:
        r += 1
        sent, heads = [], []
        for i in world.clients:
            start = (1 - weights[i]) * own[i] + weights[i] * w_g if rewards else w_g
            sent.append(trained(world, i, r, start))
            heads.append(_head(world, (start - sent[i]) / world.rate))
        new = []
        for i in world.clients:
            cosines = []
            for c in range(world.classes):
                average = sum(w * head[c] for w, head in zip(weights, heads, strict=True))
                lengths = float(heads[i][c].norm() * average.norm())
                cosines.append(float(heads[i][c] @ average) / lengths if lengths else 0.0)
            mapped = [(1 + x) / 2 if cosine == "half" else x for x in cosines]
            new.append(sum(mapped) / len(mapped))
        gamma = [
            smoothing * old + (1 - smoothing) * x for old, x in zip(gamma or new, new, strict=True)
        ]
        positive = [max(0.0, x) for x in gamma]
        weights = [x / sum(positive) if any(positive) else 1 / n for x in positive]
        w_g = sum(w * w_i for w, w_i in zip(weights, sent, strict=True))
        own = sent
        each = 4 * len(w_g) * n
        yield {
            "server": w_g,
            "clients": torch.cat(sent),
            "contributions": weights,
            "memory/shapfed/gamma": gamma,
            "bytes_up": each,
            "bytes_down": each,
            **tested(world, perceptron(world.units[0], w_g)),
        }


def _head(world: World, gradient: torch.Tensor) -> list[torch.Tensor]:
    """Return of each class the weights and the bias of the last layer."""
    classes, features = world.classes, world.units[0][-2]
    last = gradient[-classes * (features + 1) :].double()
    rows, bias = last[:-classes].view(classes, features), last[-classes:]
    return [torch.cat([rows[c], bias[c : c + 1]]) for c in range(classes)]
