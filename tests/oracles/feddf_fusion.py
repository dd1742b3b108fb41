"""Second version of FedDF with model fusion in every round (Lin et al. 2020; TallyTrain, Table 2).

The author's code (epfml/federated-learning-public-code, pcode/aggregation/
noise_knowledge_transfer.py) decides what is distilled, the softmax of the mean logits, and that
the student starts from the average; how many steps a round, on what, whether its optimizer goes on,
and the warm-up are documented choices.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import torch
from oracles.averages import average
from oracles.peers import Peer
from oracles.scores import tested
from oracles.world import World, cross_entropy, vector


def rounds(
    world: World,
    network: str = "perceptron",
    probes_per_round: int = 16,
    warm_up: int = 300,
    target: str = "logits",
    server_steps: int = 1,
    server_optimizer: str = "kept",
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    server = Peer(world, network, world.server_units, world.first_server)
    peers = [Peer(world, network, *start) for start in zip(world.units, world.first, strict=True)]
    for r in count(1):
        starts = average(peers, [server])
        losses = [p.private(i, r, 0.0, starts[i]) for i, p in enumerate(peers)]
        row: dict[str, object] = {"loss_private": np.mean(losses)}
        average([server], peers)
        if r > warm_up and server_steps:
            probes = world.probes(r, server_steps * probes_per_round)
            x, y = world.x[probes], world.y[probes]
            z = torch.stack([p.says(x) for p in peers])
            wanted = z.softmax(-1).mean(0) if target == "probabilities" else z.mean(0).softmax(-1)
            if server_optimizer == "new":
                server.forget()
            for step in range(server_steps):
                mine = slice(step * probes_per_round, (step + 1) * probes_per_round)
                server.begin("phase")
                student = server.model.train()(x[mine]).flatten(0, -2)
                server.step(cross_entropy(student, wanted[mine].flatten(0, -2)))
            row["target_accuracy"] = (wanted.argmax(-1) == y).double().mean()
        every = server.size() * len(peers)
        row |= {"bytes_up": every, "bytes_down": every, "server": vector(server.model)}
        yield row | {"contributions": [1 / len(peers)] * len(peers)} | tested(world, [server])
