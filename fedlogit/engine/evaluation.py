"""Test scores from counts: accuracy, balanced accuracy, per class, per client, and perplexity.

What is counted is a prediction: one a sample, or one a position where a sample has several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

__all__ = ["EvalCounts", "Scores", "count_correct", "score"]


@dataclass(frozen=True)
class EvalCounts:
    """What a model got right on some test samples; it stays on the device until it is scored.

    Attributes:
        hits: Right predictions by true class, int64 (classes,).
        totals: Predictions by true class, int64 (classes,).
        loss: Sum of -log p(true class), in nats, float64 ().
    """

    hits: torch.Tensor
    totals: torch.Tensor
    loss: torch.Tensor

    def __add__(self, other: EvalCounts) -> EvalCounts:
        return EvalCounts(
            self.hits + other.hits, self.totals + other.totals, self.loss + other.loss
        )


@dataclass(frozen=True)
class Scores:
    """Test scores of the clients' models.

    Attributes:
        per_client: Accuracy of each client, (clients,).
        balanced: Mean per-class recall of each client over classes in the test set, (clients,).
        per_class: Recall of each class, mean over clients, (classes,); NaN for absent classes.
        loss: Mean cross-entropy of each client, in nats, (clients,).
    """

    per_client: np.ndarray
    balanced: np.ndarray
    per_class: np.ndarray
    loss: np.ndarray

    def row(self) -> dict[str, float]:
        """Return the columns of `rounds.csv`; the spread over clients is the population's."""
        return {
            "accuracy": float(self.per_client.mean()),
            "accuracy_std": float(self.per_client.std()),
            "accuracy_min": float(self.per_client.min()),
            "accuracy_max": float(self.per_client.max()),
            "balanced_accuracy": float(self.balanced.mean()),
            "loss_test": float(self.loss.mean()),
            "perplexity": float(np.exp(np.minimum(self.loss, _LARGEST)).mean()),
        }


_LARGEST = 700.0  # nats: e to this power is still a number


def count_correct(logits: torch.Tensor, labels: torch.Tensor) -> EvalCounts:
    """Return what is right, without waiting for the device.

    Args:
        logits: (…, classes).
        labels: True classes, int64 (…).
    """
    rows, true = logits.detach().flatten(0, -2), labels.flatten()
    nothing = true.new_zeros(rows.shape[1])
    hits = nothing.scatter_add(0, true, (rows.argmax(1) == true).to(true.dtype))
    totals = nothing.scatter_add(0, true, torch.ones_like(true))
    loss = F.cross_entropy(rows, true, reduction="none").double().sum()
    return EvalCounts(hits, totals, loss)


def score(counts: Sequence[EvalCounts]) -> Scores:
    """Return the scores of each model's counts; only here the device is waited for."""
    hits, totals = _fetched([m.hits for m in counts]), _fetched([m.totals for m in counts])
    recall = np.divide(hits, totals, out=np.full(hits.shape, np.nan), where=totals > 0)
    present = totals[0] > 0
    return Scores(
        per_client=hits.sum(1) / totals.sum(1),
        balanced=recall[:, present].mean(1),
        per_class=recall.mean(0),
        loss=_fetched([m.loss for m in counts]) / totals.sum(1),
    )


def _fetched(rows: Sequence[torch.Tensor]) -> np.ndarray:
    return torch.stack(list(rows)).cpu().numpy()
