"""Test scores of several models, as rounds.csv has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oracles.peers import Peer
from oracles.world import World, cross_entropy

__all__ = ["tested"]


def tested(world: World, peers: Sequence[Peer]) -> dict[str, object]:
    """Return test accuracy and loss, mean over peers, and how the accuracies spread."""
    right, losses, y = [], [], world.y_test.flatten()
    for peer in peers:
        z = peer.says(world.x_test).flatten(0, -2)
        right.append((z.argmax(1) == y).double().mean().item())
        losses.append(cross_entropy(z, y).item())
    perplexity = np.mean(np.exp(losses))
    return {
        "accuracy": np.mean(right),
        "accuracy_std": np.sqrt(np.mean((np.array(right) - np.mean(right)) ** 2)),
        "loss_test": np.mean(losses),
    } | ({"perplexity": perplexity} if perplexity < 100 else {})  # beyond, float32 is too coarse
