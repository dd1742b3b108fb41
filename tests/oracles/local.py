"""Second version of Local: every client trains alone (Who to Trust §4.3, FedOL §V-A)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from oracles.world import World, fit, tested, vector


def rounds(world: World, with_public: bool = False) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    models = world.models()
    optimizers = [world.new_optimizer(model) for model in models]
    r = 0
    while True:
        r += 1
        losses = []
        for i, model in enumerate(models):
            known = torch.cat([world.private[i], world.public]) if with_public else world.private[i]
            batches = world.batches("private", i, r, len(known))
            losses.append(fit(model, optimizers[i], world.x[known], world.y[known], batches))
        yield {
            "clients": torch.cat([vector(model) for model in models]),
            "loss_private": sum(losses) / len(losses),
            **tested(world, *models),
        }
