"""Second version of TallyTrain (§3.4, Algorithm 1; merges and bytes as in Tables 1 to 3).

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
from oracles.averages import average, weights
from oracles.consensus import discuss
from oracles.peers import Peer
from oracles.probing import drawn, lead, loss, noted
from oracles.scores import tested
from oracles.voting_theory import measure
from oracles.world import World


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
    **channel: Any,
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    peers = [Peer(world, network, world.units[i], world.first[i]) for i in world.clients]
    starts, margin, n = weights(peers), None, len(peers)
    for r in count(1):
        losses = [p.private(i, r, proximal, starts[i]) for i, p in enumerate(peers)]
        row, sent = {"loss_private": np.mean(losses)}, Counter[str]()
        if r > warm_up:
            probes = drawn(world, r, probes_per_round, anchors_per_round)
            x, y = world.x[probes], world.y[probes].flatten()
            z = torch.stack([p.says(x) for p in peers]).flatten(1, -2).numpy()
            consensus, doubt, weight = [None] * n, [None] * n, 0.0
            if channel.get("signal") != "none":
                named, consensus, doubt, sent = discuss(world, r, z, **channel)
                weight = max(0.0, 1 - (r - warm_up) / decay_rounds) if decay_rounds else 1.0
                if margin_memory is not None:
                    now = lead(consensus)
                    past = now if margin is None else margin
                    weight = margin = margin_memory * past + (1 - margin_memory) * now
                row |= noted(named, consensus, y.numpy()) | {"consensus_weight": weight}
            if label_weight or weight * (1 - label_weight):
                for peer, h, unsure in zip(peers, consensus, doubt, strict=True):
                    peer.begin("phase")
                    f = peer.model.train()(x).flatten(0, -2)
                    stress = 1 if h is None else 1 + emphasis * torch.tensor(unsure).float()
                    peer.step(loss(f, y, label_weight, weight, h, stress))
        if theory:
            row |= measure(world, [p.model.eval() for p in peers], r, probes_per_round)
        if merge_every and r > warm_up and r % merge_every == 0:
            starts = average(peers, peers)
            sent["model"] += peers[0].size() * n * (1 if merge_cost == "star" else n - 1)
        honest = peers[: n - channel.get("adversaries", 0)]
        for way in ("up", "down"):  # what one sends another one gets, or all get from a relay
            row |= {f"bytes_{way}.{kind}": size for kind, size in sent.items()}
            row[f"bytes_{way}"] = sent.total()
        yield row | {"clients": weights(peers)} | tested(world, honest)
