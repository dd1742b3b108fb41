"""Second versions of aggregators that belong to no paper, for the method `aggregator`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from oracles.one_shot import distil, play
from oracles.world import World


def mean_probability(z: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return (1, mean of the clients' softmax), from logits (clients, points, classes)."""
    return [(torch.ones(z.shape[1]), sum(z_k.softmax(1) for z_k in z) / len(z))]


def median_logit(z: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return (1, softmax of each class's median logit), the lower of the middle two."""
    middle = torch.zeros(z.shape[1:], dtype=z.dtype)
    for x, c in torch.cartesian_prod(*map(torch.arange, z.shape[1:])):
        middle[x, c] = sorted(z[:, x, c])[(len(z) - 1) // 2]
    return [(torch.ones(len(middle)), middle.softmax(1))]


def majority(z: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the share of each class's votes, which weighs as much as its largest if over 1/2."""
    shares, weights = torch.zeros(z.shape[1:]), torch.zeros(z.shape[1])
    for x in range(z.shape[1]):
        for z_k in z:
            shares[x, z_k[x].argmax()] += 1 / len(z)
        weights[x] = shares[x].max() if shares[x].max() > 0.5 else 0.0
    return [(weights, shares)]


def rounds(world: World, function: str) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round with one of the functions above."""
    functions = {f.__name__: f for f in (mean_probability, median_logit, majority)}
    return play(world, distil(functions[function]))
