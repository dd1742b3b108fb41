"""What each client's final model is worth: Shapley values of test accuracy, exact over all subsets.

The value of a coalition is the test accuracy of the uniform average of its members' models as the
last round leaves them: trained, and under CGSV rewarded. Buffers are the global model's. This is
the ground truth that estimates of contribution are held against; no method sees it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedlogit.coalitions import shapley_values
from fedlogit.engine.evaluation import score
from fedlogit.federation.federation import Federation

__all__ = ["shapley"]


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
