"""Second version of one-shot FedDF (Lin et al. 2020, eq. 3): softmax of the mean logits.

Its public code (epfml/federated-learning-public-code, ``avg_logits``) distils this too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from oracles.one_shot import distil, play
from oracles.world import World


def terms(z: torch.Tensor, temperature: float = 1.0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the loss's only (weight, target), from logits (clients, points, classes)."""
    return [(torch.ones(z.shape[1]), (sum(z) / len(z) / temperature).softmax(1))]


def rounds(world: World, temperature: float = 1.0) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round, of one round where there is a temperature."""
    return play(world, distil(partial(terms, temperature=temperature), temperature))
