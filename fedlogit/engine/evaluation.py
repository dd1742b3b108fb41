"""Test scores from counts: accuracy, balanced, per class and per client, perplexity, calibration.

What is counted is a prediction: one a sample, or one a position where a sample has several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

__all__ = ["EvalCounts", "Scores", "count_correct", "personalized_accuracy", "score"]


@dataclass(frozen=True)
class EvalCounts:
    """What a model got right on some test samples; it stays on the device until it is scored.

    Attributes:
        hits: Right predictions by true class, int64 (classes,).
        totals: Predictions by true class, int64 (classes,).
        loss: Sum of -log p(true class), in nats, float64 ().
        gaps: Sum of (right or not) - p(predicted class), by bins of the latter, float64 (15,).
    """

    hits: torch.Tensor
    totals: torch.Tensor
    loss: torch.Tensor
    gaps: torch.Tensor

    def __add__(self, other: EvalCounts) -> EvalCounts:
        return EvalCounts(
            self.hits + other.hits,
            self.totals + other.totals,
            self.loss + other.loss,
            self.gaps + other.gaps,
        )


@dataclass(frozen=True)
class Scores:
    """Test scores of the clients' models.

    Attributes:
        per_client: Accuracy of each client, (clients,).
        balanced: Mean per-class recall of each client over classes in the test set, (clients,).
        per_class: Recall of each class, mean over clients, (classes,); NaN for absent classes.
        recall: Recall of each class by each client, (clients, classes); NaN for absent classes.
        loss: Mean cross-entropy of each client, in nats, (clients,).
        ece: Expected calibration error of each client, (clients,): by how much accuracy and
            confidence differ within a bin of confidence, mean over predictions (Guo et al. 2017,
            "On calibration of modern neural networks", Eq. 3).
    """

    per_client: np.ndarray
    balanced: np.ndarray
    per_class: np.ndarray
    recall: np.ndarray
    loss: np.ndarray
    ece: np.ndarray

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
            "ece": float(self.ece.mean()),
        }


_LARGEST = 700.0  # nats: e to this power is still a number
_AT_ONCE = 2**20  # logits whose counts are taken together
_BINS = 15  # of equal width, each with its upper end, as Guo et al. §4 have them


def count_correct(logits: torch.Tensor, labels: torch.Tensor) -> list[EvalCounts]:
    """Return what each model gets right, without waiting for the device.

    Args:
        logits: (models, …, classes).
        labels: True classes, int64 (…), the same for all models.
    """
    several = max(1, _AT_ONCE // max(1, logits[0].numel()))
    return [one for part in logits.detach().split(several) for one in _counts(part, labels)]


def _counts(logits: torch.Tensor, labels: torch.Tensor) -> Iterator[EvalCounts]:
    rows, true = logits.flatten(1, -2), labels.flatten()
    models, samples, classes = rows.shape
    nothing = true.new_zeros(models, classes)
    of_all = true.expand(models, samples)
    highest, predicted = rows.max(-1)
    right = predicted == true
    hits = nothing.scatter_add(1, of_all, right.to(true.dtype))
    totals = nothing[0].scatter_add(0, true, torch.ones_like(true))
    # `F.cross_entropy` takes eight times as long where classes are few.
    above = (rows - highest[..., None]).exp().sum(-1).double()
    below = highest - rows.gather(2, of_all[..., None])[..., 0]
    losses = (above.log() + below).sum(1)
    confidence = above.reciprocal()
    bins = (confidence * _BINS).ceil().long().clamp(1, _BINS) - 1
    of_bins = bins[..., None] == torch.arange(_BINS, device=bins.device)
    # Sums in a fixed order, on a GPU too.
    gaps = ((right.double() - confidence)[:, None] @ of_bins.double())[:, 0]
    for hit, loss, gap in zip(hits, losses, gaps, strict=True):
        yield EvalCounts(hit, totals, loss, gap)


def score(counts: Sequence[EvalCounts]) -> Scores:
    """Return the scores of each model's counts; only here the device is waited for."""
    hits, totals = _fetched([m.hits for m in counts]), _fetched([m.totals for m in counts])
    recall = np.divide(hits, totals, out=np.full(hits.shape, np.nan), where=totals > 0)
    present = totals[0] > 0
    return Scores(
        per_client=hits.sum(1) / totals.sum(1),
        balanced=recall[:, present].mean(1),
        per_class=recall.mean(0),
        recall=recall,
        loss=_fetched([m.loss for m in counts]) / totals.sum(1),
        ece=np.abs(_fetched([m.gaps for m in counts])).sum(1) / totals.sum(1),
    )


def personalized_accuracy(recall: np.ndarray, counts: np.ndarray) -> float:
    """Return test accuracy with each client's own class proportions, mean over clients.

    That is a client's recall, weighted by the classes of its private samples. Classes that are not
    in the test split are left out, and with them a client that has no others; NaN if all are.

    Args:
        recall: Of each client, (clients, classes), or of the one model that all use, (1, classes).
        counts: Private samples by client and class, (clients, classes).
    """
    known = np.where(np.isnan(recall).any(0), 0, counts)
    with_known = known.sum(1) > 0
    if not with_known.any():
        return math.nan
    right = (known * np.nan_to_num(recall)).sum(1)
    return float((right[with_known] / known[with_known].sum(1)).mean())


def _fetched(rows: Sequence[torch.Tensor]) -> np.ndarray:
    return torch.stack(list(rows)).cpu().numpy()
