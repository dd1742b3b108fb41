"""FedAvg, a second time (McMahan et al. 2017, Algorithm 1; CELM §3.1, eq. 2)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from oracles.world import World, fit, perceptron, vector


def rounds(world: World, weighting: str = "uniform") -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
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
            sgd = torch.optim.SGD(model.parameters(), lr=world.rate)
            fit(model, sgd, world.x[mine], world.y[mine], world.batches("private", i, r, len(mine)))
            trained.append(vector(model))
        w = sum(c_i * w_i for c_i, w_i in zip(c, trained, strict=True))
        each = 4 * len(w) * len(trained)  # float32, both ways
        yield {"server": w, "contributions": c, "bytes_up": each, "bytes_down": each}
