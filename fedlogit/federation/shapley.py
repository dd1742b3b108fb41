"""What each client's final model is worth: Shapley values of test accuracy, exact over all subsets.

The value of a coalition is the test accuracy of the uniform average of its members' models as the
last round leaves them: trained, and under CGSV rewarded. Buffers are the global model's. This is
the ground truth that estimates of contribution are held against; no method sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from fedlogit.engine.evaluation import score
from fedlogit.federation.federation import Federation

__all__ = ["shapley", "shapley_values"]


def shapley_values(value: Callable[[frozenset[int]], float], players: int) -> np.ndarray:
    """Return φ_i = Σ_S |S|! (N-|S|-1)! / N! (v(S ∪ {i}) - v(S)) over coalitions S without i.

    Args:
        value: The worth v of a coalition, the empty one included.
        players: Number of players N.

    Returns:
        float64 (players,), which sum to v(all) - v(none).
    """
    subsets = [frozenset(s) for k in range(players + 1) for s in combinations(range(players), k)]
    worth = {s: value(s) for s in subsets}
    return np.array(
        [
            sum(
                (worth[s | {i}] - worth[s]) / (players * comb(players - 1, len(s)))
                for s in subsets
                if i not in s
            )
            for i in range(players)
        ]
    )


def shapley(fed: Federation) -> dict[str, np.ndarray]:
    """Return ``values`` (clients,) and ``accuracy`` (2^clients,) of the coalition of each bit mask.

    An empty coalition guesses: 1 / classes. Another choice would shift all values alike.
    """
    assert fed.server is not None
    server = fed.server
    saved, vectors = server.state(), fed.vectors()
    n = len(fed.clients)
    accuracy = np.full(2**n, 1 / fed.classes)

    def value(members: frozenset[int]) -> float:
        mask = sum(1 << i for i in members)
        if members:
            mean = vectors[sorted(members)].double().mean(0)
            server.load(replace(saved, vector=mean))
            accuracy[mask] = score(fed.test_counts([server])).per_client[0]
        return float(accuracy[mask])

    try:
        values = shapley_values(value, n)
    finally:
        server.load(saved)
    return {"values": values, "accuracy": accuracy}
