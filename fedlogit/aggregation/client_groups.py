"""Groups of clients whose models are strong in the same classes, as FedHKT's are here."""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["similar_clients"]


def similar_clients(
    confidence: torch.Tensor, groups: int, generator: np.random.Generator
) -> list[list[int]]:
    """Return clients in groups by k-means on their class-wise confidence.

    Args:
        confidence: C²_k, (clients, classes).
        groups: How many; fewer if there are fewer different rows.
        generator: Chooses the ten starts of k-means, of which the best end counts.

    Returns:
        The places of each group's clients, in order; groups by their first client.
    """
    from sklearn.cluster import KMeans  # takes a second to import

    rows = confidence.double().cpu().numpy()
    most = min(groups, len(np.unique(rows, axis=0)))
    means = KMeans(most, n_init=10, random_state=int(generator.integers(2**31)))
    labels = means.fit_predict(rows).tolist()
    return [
        [place for place, label in enumerate(labels) if label == group]
        for group in dict.fromkeys(labels)
    ]
