"""TallyTrain, a second time (§3.4, Algorithm 1; merges and bytes as Tables 1 to 3 count them).

FedMD, RC-FD, FedAvg, FedProx, "no consensus" and Local are points on its axes. The authors have
published no code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import torch
from oracles.consensus import discuss
from oracles.peers import Peer, average, tested, weights
from oracles.voting_theory import measure
from oracles.world import World, cross_entropy


def rounds(
    world: World,
    network: str = "perceptron",
    probes_per_round: int = 16,
    anchors_per_round: int = 0,
    warm_up: int = 300,
    label_weight: float = 0.5,
    decay_rounds: int | None = None,
    margin_memory: float | None = None,
    emphasis: float = 0.0,
    merge_every: int | None = None,
    merge_cost: str = "star",
    proximal: float = 0.0,
    theory: bool = False,
    crops: bool = False,
    **channel: Any,
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    peers = [Peer(world, network, world.units[i], world.first[i], crops) for i in world.clients]
    starts, margin, n = weights(peers), None, len(peers)
    for r in count(1):
        losses = [p.private(world, i, r, proximal, starts[i]) for i, p in enumerate(peers)]
        row, up, down = {"loss_private": np.mean(losses)}, Counter[str](), Counter[str]()
        if r > warm_up:
            probes = drawn(world, r, probes_per_round, anchors_per_round)
            x, y = world.x[probes], world.y[probes].flatten()
            z = torch.stack([p.says(x) for p in peers]).flatten(1, -2).numpy()
            consensus, weight = [None] * n, 0.0
            if channel.get("signal") != "none":
                consensus, up = discuss(world, r, z, **channel)
                down, weight = up.copy(), 1.0
                if decay_rounds is not None:
                    weight = max(0.0, 1 - (r - warm_up) / decay_rounds)
                if margin_memory is not None:
                    ranked = np.sort(consensus, -1)
                    now = (ranked[..., -1] - ranked[..., -2]).mean()
                    past = now if margin is None else margin
                    weight = margin = margin_memory * past + (1 - margin_memory) * now
                row |= noted(z, consensus, y.numpy()) | {"consensus_weight": weight}
            if label_weight or weight * (1 - label_weight):
                for peer, h in zip(peers, consensus, strict=True):
                    peer.begin("stage")
                    f = peer.model.train()(x).flatten(0, -2)
                    peer.step(loss(f, y, label_weight, weight, h, emphasis))
        if theory:
            row |= measure(world, [p.model.eval() for p in peers], r, probes_per_round)
        if merge_every and r > warm_up and r % merge_every == 0:
            starts = average(peers, peers)
            up["model"] += peers[0].size() * n * (1 if merge_cost == "star" else n - 1)
            down["model"] += up["model"]
        honest = peers[: n - channel.get("adversaries", 0)]
        for way, sent in (("up", up), ("down", down)):
            row |= {f"bytes_{way}.{kind}": size for kind, size in sent.items()}
            row[f"bytes_{way}"] = sent.total()
        yield row | {"clients": weights(peers)} | tested(world, honest)


def drawn(world: World, r: int, size: int, anchors: int) -> torch.Tensor:
    """Return a round's probes: of arm C (appendix K) so many anchors, whose labels are known."""
    if not anchors:
        return world.probes(r, size)
    numbers, known = world.numbers("probes", r), world.y[world.public] >= 0
    parts = ((world.public[known], anchors), (world.public[~known], size - anchors))
    return torch.cat([pool[numbers.choice(len(pool), m, replace=False)] for pool, m in parts])


def loss(
    f: torch.Tensor, y: torch.Tensor, alpha: float, weight: float, h: Any, emphasis: float
) -> torch.Tensor:
    """Return α CE(f, y) over known labels, and λ (1 - α) KL(H̄ ‖ f) (appendix D's emphasis)."""
    total = alpha * cross_entropy(f[y >= 0], y[y >= 0]) if alpha else torch.zeros(())
    if h is not None:
        h = torch.tensor(h, dtype=torch.float32)
        kl = (torch.xlogy(h, h) - h * f.log_softmax(1)).sum(1)
        total = total + weight * (1 - alpha) * ((1 + emphasis * (1 - h.amax(1))) * kl).mean()
    return total


def noted(z: np.ndarray, consensus: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """Return how often a vote is the most frequent one, and how often the consensus is right."""
    votes = z.argmax(-1)
    first = [np.bincount(column).argmax() for column in votes.T]
    right = (consensus.argmax(-1) == y)[:, y >= 0]
    known = {"consensus_accuracy": right.mean()} if right.size else {}
    return {"agreement": (votes == first).mean()} | known
