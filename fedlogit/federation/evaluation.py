"""Test scores from confusion matrices: accuracy, balanced accuracy, per class, per client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

__all__ = ["Scores", "confusion", "score"]


@dataclass(frozen=True)
class Scores:
    """Test scores of the clients' models.

    Attributes:
        per_client: Accuracy of each client, (clients,).
        balanced: Mean per-class recall of each client over classes in the test set, (clients,).
        per_class: Recall of each class, mean over clients, (classes,); NaN for absent classes.
    """

    per_client: np.ndarray
    balanced: np.ndarray
    per_class: np.ndarray

    def row(self) -> dict[str, float]:
        """Return the columns of `rounds.csv`; the spread over clients is the population's."""
        return {
            "accuracy": float(self.per_client.mean()),
            "accuracy_std": float(self.per_client.std()),
            "accuracy_min": float(self.per_client.min()),
            "accuracy_max": float(self.per_client.max()),
            "balanced_accuracy": float(self.balanced.mean()),
        }


def confusion(predicted: torch.Tensor, labels: torch.Tensor, classes: int) -> np.ndarray:
    """Return counts by true class (rows) and predicted class (columns), int64."""
    cells = torch.bincount(labels * classes + predicted, minlength=classes * classes)
    return cells.view(classes, classes).cpu().numpy()


def score(tables: np.ndarray) -> Scores:
    """Return the scores of confusion matrices (clients, classes, classes)."""
    hits = np.diagonal(tables, axis1=1, axis2=2)
    totals = tables.sum(2)
    recall = np.divide(hits, totals, out=np.full(hits.shape, np.nan), where=totals > 0)
    present = totals[0] > 0
    return Scores(
        per_client=hits.sum(1) / totals.sum(1),
        balanced=recall[:, present].mean(1),
        per_class=recall.mean(0),
    )
