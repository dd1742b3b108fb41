"""Second version of FedET's consensus with diversity (Cho et al. 2022, §3.2, eq. 4-8).

α_k(x) is the variance of a client's logits as a share of all clients'. The label is the class of
Σ α_k z_k; those who disagree form a second, soft target of weight λ, with their α made to sum to 1.
Where nobody disagrees who has a weight there is none: a public port of FedET divides by zero there.
Logits that are all equal have no variance; α is uniform where those of no client differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from oracles.one_shot import distil, play
from oracles.world import World
from scipy.special import softmax


def terms(z: torch.Tensor, regularisation: float) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return (1, label) and (λ or 0, diversity), from logits (clients, points, classes)."""
    clients, points, classes = z.shape
    label, diverse = np.zeros((points, classes)), np.zeros((points, classes))
    weight = np.zeros(points)
    for x in range(points):
        logits = z[:, x].numpy()
        spread = [np.mean((row - row.mean()) ** 2) for row in logits]
        alpha = [a / sum(spread) if sum(spread) else 1 / clients for a in spread]
        y = np.argmax(sum(a * row for a, row in zip(alpha, logits, strict=True)))
        label[x, y] = 1
        others = [k for k in range(clients) if alpha[k] > 0 and np.argmax(logits[k]) != y]
        if others:
            total = sum(alpha[k] for k in others)
            diverse[x] = softmax(sum(alpha[k] / total * logits[k] for k in others))
            weight[x] = regularisation
    tensors = [torch.as_tensor(a) for a in (np.ones(points), label, weight, diverse)]
    return [(tensors[0], tensors[1]), (tensors[2], tensors[3])]


def rounds(world: World, regularisation: float = 0.05) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    return play(world, distil(terms), regularisation=regularisation)
