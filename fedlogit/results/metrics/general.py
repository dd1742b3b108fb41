"""Metrics that every run has, whatever its method: accuracy, bytes, time."""

from __future__ import annotations

import math
from collections.abc import Callable

from fedlogit.errors import DataError
from fedlogit.results.metrics.metric import Metric
from fedlogit.results.runs.run import Run

__all__ = ["METRICS", "bytes_of"]

_VALIDATION = "evaluation: {validation: n, with_test: true}"


def bytes_of(run: Run, direction: str) -> float:
    """Return the bytes of a client in a round, ``up`` or ``down``, on average."""
    sent: dict[str, int] = getattr(run.result.bytes, direction)
    return sum(sent.values()) / (run.spec.clients * len(run.rounds))


def _bytes_sent(run: Run) -> float:
    """Bytes of a client in the whole run, also what it sends before the rounds or after them."""
    return sum(run.result.bytes.up.values()) / run.spec.clients


def _final(name: str) -> Callable[[Run], float]:
    """After the last round; NaN where nothing was tested."""

    def value(run: Run) -> float:
        found = getattr(run.result.final, name)
        return math.nan if found is None else float(found)

    return value


def _at_best_validation(run: Run) -> float:
    """Test accuracy of the first round whose validation accuracy none exceeds; NaN without one."""
    if "validation_accuracy" not in run.rounds:
        raise DataError(
            f"{run.folder}: accuracy_at_best_validation needs both accuracies; give {_VALIDATION}"
        )
    tested = run.rounds.dropna(subset=["validation_accuracy", "accuracy"])
    if tested.empty:
        return math.nan
    return float(tested["accuracy"].iloc[tested["validation_accuracy"].argmax()])


METRICS = (
    Metric("accuracy", "test accuracy", _final("accuracy"), "share"),
    Metric(
        "accuracy_std",
        "standard deviation of test accuracy over clients",
        _final("accuracy_std"),
        "share",
    ),
    Metric("balanced_accuracy", "balanced test accuracy", _final("balanced_accuracy"), "share"),
    Metric(
        "validation_accuracy",
        "validation accuracy",
        unit="share",
        absence=f"only runs with {_VALIDATION} have it",
    ),
    Metric(
        "accuracy_at_best_validation",
        "test accuracy in the round of the best validation accuracy",
        _at_best_validation,
        "share",
    ),
    Metric(
        "personalized_accuracy",
        "test accuracy with each client's own class proportions",
        unit="share",
        absence="texts and runs of earlier code have none",
    ),
    Metric("loss_test", "cross-entropy on the test split [nats]", unit="nats", decimals=4),
    Metric("ece", "expected calibration error (15 bins)", unit="share"),
    Metric("bytes_up", "bytes sent per client per round", lambda r: bytes_of(r, "up"), "bytes"),
    Metric(
        "bytes_down", "bytes received per client per round", lambda r: bytes_of(r, "down"), "bytes"
    ),
    Metric("bytes_sent", "bytes that a client sends in the whole run", _bytes_sent, "bytes"),
    Metric(
        "seconds",
        "seconds of training",
        lambda run: run.result.provenance.seconds_with_clients,
        "s",
        1,
    ),
    Metric("weight_max", "mean over public samples of the largest weight", unit="share"),
    Metric("weight_on_holders", "weight on clients that hold a sample's class", unit="share"),
    Metric(
        "log_likelihood",
        "log-likelihood of public samples at clients that hold their class [nats]",
        unit="nats",
        decimals=1,
    ),
)
