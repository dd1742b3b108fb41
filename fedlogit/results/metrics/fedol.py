"""Metrics of FedOL's tables: ensembles of the clients, classes nobody holds, MiB sent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedlogit.results.metrics.general import bytes_of
from fedlogit.results.metrics.metric import Metric
from fedlogit.results.runs.run import Run

__all__ = ["METRICS"]


def _mebibytes_up(run: Run) -> float:
    """MiB that a client sends in a round (FedOL Table II, which calls them MB)."""
    return bytes_of(run, "up") / 2**20


def _mebibytes_up_f64(run: Run) -> float:
    """The same if its numbers, which are of 4 bytes, had 8: what Table II prints for logits."""
    return 2 * _mebibytes_up(run)


def _ensemble(decide: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[Run], float]:
    """Accuracy of the final models together, from their logits on the test split."""

    def accuracy(run: Run) -> float:
        found = run.export("test_logits", "logits", "labels")
        return float(decide(found["logits"], found["labels"]).mean())

    return accuracy


def _mean_is_right(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return logits.mean(0).argmax(1) == labels


def _votes_are_right(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Plurality; of equal counts the smallest class wins."""
    hot = np.eye(logits.shape[2])[logits.argmax(2)]
    return hot.sum(0).argmax(1) == labels


def _somebody_is_right(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return (logits.argmax(2) == labels).any(0)


def _lost_classes(run: Run) -> float:
    """Classes that no client holds, so that nobody can teach them (FedOL §V-A's second split)."""
    return float((run.counts().sum(0) == 0).sum())


METRICS = (
    # Table II
    Metric("mebibytes_up", "sent per client per round [MiB]", _mebibytes_up, "MiB", 2),
    Metric(
        "mebibytes_up_f64",
        "sent per client per round, 8-byte numbers [MiB]",
        _mebibytes_up_f64,
        "MiB",
        2,
    ),
    Metric("lost_classes", "classes that no client holds", _lost_classes),
    # ensembles of the clients' final models, on the test split
    Metric("mean_logits_accuracy", "mean logits accuracy", _ensemble(_mean_is_right), "share"),
    Metric("vote_accuracy", "vote accuracy", _ensemble(_votes_are_right), "share"),
    Metric(
        "oracle_test_accuracy",
        "oracle accuracy on the test split",
        _ensemble(_somebody_is_right),
        "share",
    ),
    Metric(
        "agreement", "agreement of clients (pairwise; TallyTrain: with the plurality)", unit="share"
    ),
    Metric("oracle_accuracy", "oracle accuracy (at least one client is right)", unit="share"),
)
