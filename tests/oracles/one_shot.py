"""Second version of the round of FedOL and its peers: clients answer, the server learns (§II).

In several rounds, all but the last end with clients distilling the server's predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np
import torch
from oracles.world import World, fit, vector
from scipy.special import softmax
from torch import nn
from torch.special import entr

Terms = list[tuple[torch.Tensor, torch.Tensor]]
Lesson = Callable[..., dict[str, object]]


def distil(terms: Callable[..., Terms], temperature: float = 1.0) -> Lesson:
    """Return the lesson whose loss is the mean over x of Σ_terms weight(x) CE(target(x), σ(w_s)).

    Its gradient is that of Σ weight KL(target ‖ σ(w_s)). A sample that weighs 0 is left out. At a
    temperature T the loss is T² CE(target, σ(w_s / T)).
    """

    def lesson(
        world: World, server: nn.Module, z: torch.Tensor, r: int, **options: Any
    ) -> dict[str, object]:
        wanted = sum(w[:, None] * target for w, target in terms(z.double(), **options)).float()
        known = wanted.sum(1) > 0
        x, y = world.x[world.public][known], world.y[world.public][known]
        optimizer = world.new_optimizer(server, world.server_optimizer)
        batches = world.server_batches(r, 1, len(x))
        change = world.crops("augment/teach", r, 1)
        loss = fit(server, optimizer, x, wanted[known], batches, change, temperature)
        right = wanted[known].argmax(1) == y
        return {"loss_server": loss, "target_accuracy": right.double().mean()}

    return lesson


def play(
    world: World,
    lesson: Lesson,
    between: Callable[..., dict[str, Any]] = lambda clients, x: {},
    **options: Any,
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round.

    Args:
        world: The problem.
        lesson: Trains the server's model on the clients' logits; returns what it logs.
        between: What clients do before they answer; returns bytes ``up`` and ``down``, and logs.
        options: Its other arguments, those of the method.
    """
    clients, server = world.models(), world.server()
    optimizers = [world.new_optimizer(client) for client in clients]

    def stage(name: str, i: int, r: int, points: torch.Tensor, targets: torch.Tensor) -> float:
        if world.optimizer["reset_every"] == "phase":
            optimizers[i] = world.new_optimizer(clients[i])
        change = world.crops("augment" if name == "private" else "none", i, r)
        batches = world.batches(name, i, r, len(points))
        return fit(clients[i], optimizers[i], world.x[points], targets, batches, change)

    x, y = world.x[world.public], world.y[world.public]
    for r in range(1, world.rounds + 1):
        own = [(i, r, points, world.y[points]) for i, points in enumerate(world.private)]
        losses = {"loss_private": np.mean([stage("private", *what) for what in own])}
        sent = {"up": 0, "down": 0} | between(clients, x)
        z = torch.stack([client(x).detach() for client in clients])
        noted = lesson(world, server, z, r, **options)
        if r < world.rounds:
            answer = (r, world.public, server(x).detach().softmax(1))
            losses["loss_distil"] = np.mean([stage("distil", i, *answer) for i in world.clients])
        said, entropy = z.argmax(2), entr(z.double().softmax(2)).sum(2)
        pairs = [(a == b).double().mean() for a, b in permutations(said, 2)] or [1.0]
        row = {
            "server": vector(server),
            "clients": [vector(client) for client in clients],
            "accuracy": (server(world.x_test).argmax(1) == world.y_test).double().mean(),
            "test_logits": [client(world.x_test) for client in clients],
            "bytes_up": 4 * z.numel() + sent.pop("up"),
            "bytes_down": (4 * z.numel() if r < world.rounds else 0) + sent.pop("down"),
            "client_public_accuracy": (said == y).double().mean(),
            "oracle_accuracy": (said == y).any(0).double().mean(),
            "agreement": sum(pairs) / len(pairs),
            "kept/aggregation/weights": softmax(-entropy.numpy(), axis=0),
        }
        yield losses | noted | row | sent
