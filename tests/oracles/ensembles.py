"""Second version of what clients know together: mean, vote and oracle accuracy, by sample."""

from __future__ import annotations

import numpy as np


def accuracies(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the accuracies of logits (clients, samples, classes) against labels (samples,).

    Where classes are equal the lowest one wins.
    """
    right = {"mean_logits_accuracy": 0, "vote_accuracy": 0, "oracle_test_accuracy": 0}
    for n, label in enumerate(labels.tolist()):
        rows = [row.tolist() for row in logits[:, n]]
        together = [sum(column) for column in zip(*rows, strict=True)]
        said = [row.index(max(row)) for row in rows]
        named = sorted(set(said), key=lambda c: (-said.count(c), c))
        right["mean_logits_accuracy"] += together.index(max(together)) == label
        right["vote_accuracy"] += named[0] == label
        right["oracle_test_accuracy"] += label in said
    return {name: hits / len(labels) for name, hits in right.items()}
