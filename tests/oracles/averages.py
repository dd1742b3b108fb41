"""The plain average of models: a merge (TallyTrain, Algorithm 1), or FedDF's fusion."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from oracles.peers import Peer
from oracles.world import vector

__all__ = ["average", "weights"]


def average(takers: Sequence[Peer], givers: Sequence[Peer]) -> list[torch.Tensor]:
    """Give each taker the plain average of the givers' weights and statistics; return what it has.

    Optimizers go on as they are.
    """
    states = [giver.model.state_dict() for giver in givers]
    mean = {key: sum(s[key] for s in states) / len(states) for key in states[0]}
    for taker in takers:
        taker.model.load_state_dict(mean)
    return weights(takers)


def weights(peers: Sequence[Peer]) -> list[torch.Tensor]:
    """Return each peer's weights."""
    return [vector(peer.model) for peer in peers]
