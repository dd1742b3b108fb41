"""FedHKT in one round, a second time: Σ_k λ_k KL(p_k ‖ σ(w_s)) with λ of FedOL's eq. 14.

No code of it is public. Without several rounds it neither groups clients nor averages models.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from oracles.one_shot import distil, play
from oracles.world import World


def terms(z: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return (λ_k, p_k) of each client, from logits (clients, points, classes)."""
    found = []
    for z_k in z:
        p = z_k.softmax(1)
        found.append(((-torch.special.entr(p).sum(1)).exp(), p))
    total = sum(weight for weight, _ in found)
    return [(weight / total, p) for weight, p in found]


def rounds(world: World) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    return play(world, distil(terms))
