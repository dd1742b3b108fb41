"""Second version of FedOL's Algorithm 1 (eq. 10-13), one sample, model and class after another.

The label is the argmax over classes that some model voted for, the lowest of a tie. Without
negative votes, G is Σ C² of those who vote for a class, and is not divided.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from scipy.special import entr


def pseudo_labels(p: np.ndarray, rho: float, negative: bool, votes: str) -> list[int | None]:
    """Algorithm 1, from predictions (models, points, classes); None is the vector 0."""
    models, points, classes = p.shape
    c2 = [p[m].mean(0) if votes == "confidence" else np.ones(classes) for m in range(models)]
    entropy = entr(p).sum(2)
    rank = ceil(round(rho * points, 9))  # 0.15 · 20 is 3
    baseline = [sorted(entropy[m])[rank - 1] for m in range(models)]
    labels: list[int | None] = []
    for x in range(points):
        reliable = [m for m in range(models) if entropy[m, x] <= baseline[m]]
        best, label = -np.inf, None
        for c in sorted({int(p[m, x].argmax()) for m in reliable}):
            up = sum(c2[m][c] for m in reliable if p[m, x].argmax() == c)
            down = sum(c2[m][c] for m in reliable if p[m, x].argmax() != c)
            g = (up - down) / (up + down) if negative else up
            if g > best:
                best, label = g, c
        labels.append(label)
    return labels
