"""Second version of FedKT (Li et al. 2021, Algorithm 1, without privacy; FedOL §V-A).

Its paper's consistent voting; in its public code (QinbinLi/FedKT) that check is commented out. Both
votes are on the whole public set, and a sample that nobody votes on teaches nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from oracles.world import World, fit, perceptron, vector


def rounds(
    world: World, partitions: int = 2, teachers: int = 5, consistent: bool = True
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after the only round."""
    x, truth = world.x[world.public], world.y[world.public]

    def answers(role: str, i: int, j: int, points: torch.Tensor, labels: torch.Tensor) -> list[int]:
        """Return what the j-th model of a role, trained by party i, says of the public samples."""
        model = perceptron(world.units[i], world.build_client(role, i, j))
        batches = world.batches(f"{role}/{j}", i, 1, len(points))
        fit(model, world.new_optimizer(model), world.x[points], labels, batches)
        return model(x).argmax(1).tolist()

    sent, ballots = 0, []
    for i in world.clients:
        students = []
        for p in range(partitions):
            order = world.numbers("fedkt/cut", i, p).permutation(len(world.private[i]))
            parts = np.array_split(world.private[i][order], teachers)
            said = [
                answers(f"teacher/{p}", i, j, part, world.y[part]) for j, part in enumerate(parts)
            ]
            labels = torch.tensor([plurality(votes) for votes in zip(*said, strict=True)])
            students.append(answers(f"student/{p}", i, 0, world.public, labels))
            sent += 4 * len(world.first[i])
        ballots.append(list(zip(*students, strict=True)))
    labels = []
    for n in range(len(x)):
        votes = [party[n] for party in ballots if not consistent or len(set(party[n])) == 1]
        labels.append(plurality([c for party in votes for c in party]))
    known = [n for n, label in enumerate(labels) if label is not None]
    server, wanted = world.server(), torch.tensor([labels[n] for n in known])
    optimizer = world.new_optimizer(server, world.server_optimizer)
    fit(server, optimizer, x[known], wanted, world.server_batches(1, 1, len(known)))
    yield {
        "server": vector(server),
        "accuracy": (server(world.x_test).argmax(1) == world.y_test).double().mean(),
        "target_share": len(known) / len(x),
        "target_accuracy": (wanted == truth[known]).double().mean(),
        "bytes_up": sent,
        "bytes_down": 0,
    }


def plurality(votes: Sequence[int]) -> int | None:
    """Return the class named most often, the lowest of a tie; None without votes."""
    counts = Counter(votes)
    return min(counts, key=lambda c: (-counts[c], c)) if counts else None
