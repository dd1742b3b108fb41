"""Second version of FedProx (Li et al. 2020, Algorithm 2; FedOL §V-A)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from oracles.world import World, cross_entropy, perceptron, tested, vector


def rounds(
    world: World, mu: float = 0.01, weighting: str = "samples"
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round; local steps are plain gradient descent."""
    w = world.first_server
    sizes = [len(p) if weighting == "samples" else 1 for p in world.private]
    c = [size / sum(sizes) for size in sizes]
    r = 0
    while True:
        r += 1
        trained = []
        for i in world.clients:
            model = perceptron(world.units[i], w)
            mine = world.private[i]
            for positions in world.batches("private", i, r, len(mine)):
                x, y = world.x[mine[positions]], world.y[mine[positions]]
                away = torch.cat([p.flatten() for p in model.parameters()]) - w
                loss = cross_entropy(model(x), y) + mu / 2 * (away**2).sum()
                gradients = torch.autograd.grad(loss, list(model.parameters()))
                with torch.no_grad():
                    for p, gradient in zip(model.parameters(), gradients, strict=True):
                        p -= world.rate * gradient
            trained.append(vector(model))
        w = sum(c_i * w_i for c_i, w_i in zip(c, trained, strict=True))
        each = 4 * len(w) * len(trained)
        scores = tested(world, perceptron(world.units[0], w))
        yield {"server": w, "contributions": c, "bytes_up": each, "bytes_down": each} | scores
