"""Second version of one-shot FedDF (Lin et al. 2020, eq. 3): softmax of the mean logits.

Its public code (epfml/federated-learning-public-code, ``avg_logits``) distils this too.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from oracles.one_shot import distil, play
from oracles.world import World


def terms(z: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the loss's only (weight, target), from logits (clients, points, classes)."""
    return [(torch.ones(z.shape[1]), (sum(z) / len(z)).softmax(1))]


def rounds(world: World) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    return play(world, distil(terms))
