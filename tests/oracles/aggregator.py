"""An aggregator from anywhere, a second time (FedOL §II: clients answer, the server learns)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import torch
from oracles.world import World, fit, tested, vector


def product(logits: torch.Tensor) -> torch.Tensor:
    """Return the product of the clients' distributions, which sums to 1: an aggregator."""
    return logits.log_softmax(2).sum(0).softmax(1)


def mean(logits: torch.Tensor) -> torch.Tensor:
    """Return the mean of the clients' distributions, the default."""
    return sum(z.softmax(1) for z in logits) / len(logits)


def rounds(world: World, aggregate: str = "mean") -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    models, server, public = world.models(), world.server(), world.public
    optimizers = [world.new_optimizer(model) for model in models]
    n, x, truth = len(models), world.x[public], world.y[public]
    r = 0
    while True:
        r += 1
        for i, model in enumerate(models):
            mine = world.private[i]
            batches = world.batches("private", i, r, len(mine))
            fit(model, optimizers[i], world.x[mine], world.y[mine], batches)
        with torch.no_grad():
            logits = torch.stack([model(x) for model in models])
        targets = {"mean": mean, "product": product}[aggregate](logits)
        batches = world.server_batches(r, 1, len(public))
        loss = fit(server, world.new_optimizer(server), x, targets, batches)
        size = 4 * len(public) * world.classes * n
        if r < world.rounds:
            with torch.no_grad():
                answer = server(x).softmax(1)
            for i, model in enumerate(models):
                fit(model, optimizers[i], x, answer, world.batches("distil", i, r, len(public)))
        named = logits.argmax(2)
        pairs = list(permutations(range(n), 2))
        yield {
            "server": vector(server),
            "clients": torch.cat([vector(model) for model in models]),
            "loss_server": loss,
            "target_accuracy": (targets.argmax(1) == truth).double().mean(),
            "client_public_accuracy": (named == truth).double().mean(),
            "oracle_accuracy": (named == truth).any(0).double().mean(),
            "agreement": sum((named[i] == named[j]).double().mean() for i, j in pairs) / len(pairs),
            "bytes_up": size,
            **({"bytes_down": size} if r < world.rounds else {}),
            **tested(world, server),
        }
