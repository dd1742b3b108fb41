"""The round of FedOL and its peers, a second time: clients answer, the server learns (FedOL §II).

In several rounds, all but the last end with clients distilling the server's predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import torch
from oracles.world import World, fit, vector
from scipy.special import entr

Terms = list[tuple[torch.Tensor, torch.Tensor]]
Lesson = Callable[..., dict[str, object]]


def distil(terms: Callable[..., Terms]) -> Lesson:
    """Return the lesson whose loss is the mean over x of Σ_terms weight(x) CE(target(x), σ(w_s)).

    Its gradient is that of Σ weight KL(target ‖ σ(w_s)). A sample that weighs 0 is left out.
    """

    def lesson(
        world: World, server: Any, z: torch.Tensor, r: int, augment: bool, **options: float
    ) -> dict[str, object]:
        wanted = sum(w[:, None] * target for w, target in terms(z.double(), **options)).float()
        known = wanted.sum(1) > 0
        optimizer = world.server_optimizer(server.parameters())
        batches = world.server_batches(r, 1, int(known.sum()))
        x, y = world.x[world.public][known], world.y[world.public][known]
        change = world.crops("augment/teach", r, 1, on=augment)
        fit(server, optimizer, x, wanted[known], batches, change)
        return {"target_accuracy": (wanted[known].argmax(1) == y).double().mean()}

    return lesson


def rounds(
    world: World,
    lesson: Lesson,
    last: int = 1,
    lifetime: str = "run",
    augment: bool = False,
    **options: Any,
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each of `last` rounds; optimizers live a ``run`` or a ``stage``.

    `lesson` trains the server's model on the clients' logits; `options` are its method's.
    """
    clients, server = world.models(), world.server()
    optimizers = [world.optimizer(client.parameters()) for client in clients]

    def stage(name: str, i: int, r: int, points: torch.Tensor, targets: torch.Tensor) -> None:
        if lifetime == "stage":
            optimizers[i] = world.optimizer(clients[i].parameters())
        change = world.crops("augment", i, r, on=augment and name == "private")
        batches = world.batches(name, i, r, len(points))
        fit(clients[i], optimizers[i], world.x[points], targets, batches, change)

    x, y = world.x[world.public], world.y[world.public]
    for r in range(1, last + 1):
        for i in world.clients:
            stage("private", i, r, world.private[i], world.y[world.private[i]])
        z = torch.stack([client(x).detach() for client in clients])
        noted = lesson(world, server, z, r, augment, **options)
        if r < last:
            for i in world.clients:
                stage("distil", i, r, world.public, server(x).detach().softmax(1))
        said, sure = (
            z.argmax(2),
            torch.stack([(-entr(p.double().softmax(1)).sum(1)).exp() for p in z]),
        )
        pairs = [(a == b).double().mean() for a, b in permutations(said, 2)] or [1.0]
        yield noted | {
            "server": vector(server),
            "clients": [vector(client) for client in clients],
            "accuracy": (server(world.x_test).argmax(1) == world.y_test).double().mean(),
            "test_logits": [client(world.x_test) for client in clients],
            "bytes_up": 4 * z.numel(),
            "bytes_down": 4 * z.numel() if r < last else 0,
            "client_public_accuracy": (said == y).double().mean(),
            "oracle_accuracy": (said == y).any(0).double().mean(),
            "agreement": sum(pairs) / len(pairs),
            "kept/aggregation/weights": sure / sure.sum(0),
        }
