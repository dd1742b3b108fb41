"""Metrics of CELM: rare classes, free riders, distances, probing, Shapley values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from fedlogit.errors import DataError
from fedlogit.results.metrics.detection import auroc, false_positive_rate
from fedlogit.results.metrics.metric import Metric
from fedlogit.results.metrics.shapley import rank_correlation
from fedlogit.results.runs.run import Run

__all__ = ["METRICS", "final_evidence", "free_riders"]


def _rare_accuracy(run: Run) -> float:
    """Mean recall over the rare classes (CELM Table 2)."""
    rare = _given(run, "rare_classes", run.result.split.rare_classes)
    recall = run.result.final.per_class
    if not recall:
        raise DataError(f"{run.folder}: nothing was tested: it has no accuracy of rare classes")
    unseen = [c for c in rare if recall[c] is None]
    if unseen:
        raise DataError(f"{run.folder}: the test split has no sample of the rare class {unseen[0]}")
    return float(np.mean([recall[c] for c in rare]))


def _auroc(run: Run) -> float:
    """CELM Table 3."""
    return auroc(run.contributions(), free_riders(run))


def _fpr(run: Run) -> float:
    """CELM Table 3: mean over rounds and thresholds."""
    return float(false_positive_rate(run.contributions(), free_riders(run)).mean())


def free_riders(run: Run) -> list[int]:
    """Return which clients are free riders, of a run in which they can be detected.

    Raises:
        DataError: if there are none, or clients may be absent from a round.
    """
    if run.spec.participation is not None:
        raise DataError(
            f"{run.folder}: who is absent contributes 0, as a free rider may: detection is of runs"
            " in which all clients are present (participation: null)"
        )
    return _given(run, "free_riders", run.result.split.free_riders)


def _given(run: Run, what: str, values: list[int]) -> list[int]:
    if not values:
        raise DataError(f"{run.folder}: partition {run.spec.partition.name} has no {what}")
    return values


def _evidence(run: Run) -> np.ndarray:
    """Return Q of every warm-up round, (rounds, clients, classes); 0 for classes not probed.

    Raises:
        DataError: if clients may be absent from a round.
    """
    if run.spec.participation is not None:
        raise DataError(
            f"{run.folder}: an absent client has no evidence: distances of evidence from the true"
            " counts are of runs in which all clients are present (participation: null)"
        )
    return np.nan_to_num(run.export("evidence", "evidence")["evidence"])


def final_evidence(run: Run) -> np.ndarray:
    """Return Q of the last warm-up round, (clients, classes); 0 for classes not probed in it."""
    return _evidence(run)[-1]


def _mean_evidence(run: Run) -> np.ndarray:
    """Return the mean of Q over the warm-up rounds."""
    return _evidence(run).mean(0)


def _class_shares(run: Run) -> np.ndarray:
    """Return each class's evidence of the last warm-up round, shared out (CELM eq. 10)."""
    q = final_evidence(run)
    total = q.sum(0)
    return np.divide(q, total, out=np.zeros_like(q), where=total > 0)


def _distance(key: str, *evidence: Callable[[Run], np.ndarray]) -> Callable[[Run], float]:
    """CELM Table 4: true counts against the evidence; without any, a uniform distribution."""
    return lambda run: _distances(run.counts(), *(of(run) for of in evidence))[key]


def _distance_at(key: str) -> Callable[[Run, int], float]:
    """CELM Table 4 with Q of one warm-up round; NaN after the last one."""

    def at(run: Run, number: int) -> float:
        q = _evidence(run)
        return _distances(run.counts(), q[number - 1])[key] if number <= len(q) else math.nan

    return at


def _distances(*counts: np.ndarray) -> dict[str, float]:
    from fedlogit.partition import distances  # few tables need it

    return distances(*counts)


def _contrast(present: bool) -> Callable[[Run], float]:
    """CELM Figure 7: mean over clients and classes that they hold, or do not, of an image's spread.

    Contrast is the standard deviation of an image's pixels, as the clients' models see them.
    """

    def mean(run: Run) -> float:
        arrays = run.export("probes", "images", "owned")
        clients = arrays["images"][1:]  # the first are the server's
        spread = clients.reshape(*clients.shape[:2], -1).std(axis=2)
        chosen = spread[arrays["owned"].astype(bool) == present]
        return float(chosen.mean()) if len(chosen) else math.nan

    return mean


def _shapley_correlation(run: Run) -> float:
    """Rank correlation of the last contributions with Shapley values; NaN if all are alike."""
    values = run.export("shapley", "values")["values"]
    return rank_correlation(run.contributions()[-1], values)


def _seconds_probe(run: Run) -> float:
    """Mean seconds of probing in a warm-up round."""
    return float(_probed(run)["seconds_probe"].mean())


def _probe_share(run: Run) -> float:
    """Probing as a share of the time of the warm-up rounds."""
    rounds = _probed(run)
    return float(rounds["seconds_probe"].sum() / rounds["seconds"].sum())


def _probed(run: Run) -> pd.DataFrame:
    if "seconds_probe" not in run.rounds:
        raise DataError(f"{run.folder}: method {run.spec.method.name} does not probe")
    return run.rounds.dropna(subset=["seconds_probe"])


_DISTANCES = {
    "jsd": "Jensen-Shannon distance",
    "emd": "earth mover's distance",
    "emd_direct": "earth mover's distance with clients in their order",
    "hellinger": "Hellinger distance",
}


def _of_table4() -> Iterator[Metric]:
    """Yield CELM Table 4: distances of true counts from evidence, and from nothing known."""
    for key, label in _DISTANCES.items():
        yield Metric(
            key, label, _distance(key, final_evidence), decimals=3, at_round=_distance_at(key)
        )
        for what, of, suffix in (
            ("mean", _mean_evidence, "of the mean evidence"),
            ("shares", _class_shares, "of class shares"),
        ):
            yield Metric(f"{key}_{what}", f"{label} {suffix}", _distance(key, of), decimals=3)
        yield Metric(f"{key}_uniform", f"{label} from uniform", _distance(key), decimals=3)


METRICS = (
    Metric("rare_accuracy", "rare-class accuracy", _rare_accuracy, "share"),  # Table 2
    Metric("auroc", "AUROC", _auroc, "share"),  # Table 3
    Metric("fpr", "false-positive rate", _fpr, "share"),  # Table 3
    *_of_table4(),
    Metric(  # Figure 7
        "probe_contrast_present",
        "contrast of probe images of classes that the client holds",
        _contrast(present=True),
        decimals=3,
    ),
    Metric(
        "probe_contrast_absent",
        "contrast of probe images of other classes",
        _contrast(present=False),
        decimals=3,
    ),
    Metric(
        "shapley_correlation",
        "rank correlation with Shapley values",
        _shapley_correlation,
        decimals=2,
    ),
    Metric("seconds_probe", "time spent probing in a warm-up round [s]", _seconds_probe, "s", 2),
    Metric("probe_share", "share of a warm-up round spent probing", _probe_share, "share"),
)
