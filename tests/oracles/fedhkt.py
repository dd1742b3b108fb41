"""Second version of FedHKT: Σ_k λ_k KL(p_k ‖ σ(w_s)) with λ of FedOL's eq. 14.

No code of it is public. In several rounds clients that are strong in the same classes may share
models, and the server may leave out what it knows better than the ensemble.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import torch
from oracles.one_shot import distil, play
from oracles.world import World, load, vector
from torch import nn


def terms(z: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return (λ_k, p_k) of each client, from logits (clients, points, classes)."""
    found = []
    for z_k in z:
        p = z_k.softmax(1)
        found.append(((-torch.special.entr(p).sum(1)).exp(), p))
    total = sum(weight for weight, _ in found)
    return [(weight / total, p) for weight, p in found]


def nearest(points: torch.Tensor, groups: int) -> list[list[int]]:
    """Return the division into so many groups whose points lie nearest to their means, of all."""

    def spread(labels: tuple[int, ...]) -> float:
        total = 0.0
        for group in set(labels):
            own = points[[label == group for label in labels]]
            total += float(((own - own.mean(0)) ** 2).sum())
        return total

    n = len(points)
    ways = [w for w in product(range(groups), repeat=n) if len(set(w)) == groups]
    best = min(ways, key=spread)
    return [[i for i in range(n) if best[i] == group] for group in range(groups)]


def share(groups: int, clients: Sequence[nn.Module], x: torch.Tensor) -> dict[str, object]:
    """Give every client the mean of the models of its size in its group; return what is sent."""
    strong = torch.stack([client(x).detach().double().softmax(1).mean(0) for client in clients])
    sizes = [len(vector(client)) for client in clients]
    for group in nearest(strong, groups):
        for size in {sizes[i] for i in group}:
            alike = [i for i in group if sizes[i] == size]
            mean = torch.stack([vector(clients[i]).detach() for i in alike]).mean(0)
            for i in alike:
                load(clients[i], mean)
    return {"up": 4 * (strong.numel() + sum(sizes)), "down": 4 * sum(sizes), "groups": groups}


def surer(server: nn.Module, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """Return where the server's entropy is below the ensemble's."""
    mixed = sum(weight[:, None] * p for weight, p in terms(z.double()))
    own = torch.special.entr(server(x).detach().double().softmax(1)).sum(1)
    return own < torch.special.entr(mixed).sum(1)


def rounds(world: World, groups: int = 0, selection: bool = False) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""

    def chosen(z: torch.Tensor, left_out: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(weight * ~left_out, p) for weight, p in terms(z)]

    def lesson(world: World, server: nn.Module, z: torch.Tensor, r: int) -> dict[str, object]:
        if not selection or r == 1:
            return distil(terms)(world, server, z, r)
        left_out = surer(server, world.x[world.public], z)
        noted = {"selected_share": (~left_out).double().mean()}
        return noted | distil(chosen)(world, server, z, r, left_out=left_out)

    def together(clients: Sequence[nn.Module], x: torch.Tensor) -> dict[str, object]:
        return share(groups, clients, x) if groups else {}

    return play(world, lesson, together)
