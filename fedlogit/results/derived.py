"""Metrics that are computed from what a run left, by name: a new one needs no new run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from fedlogit.errors import DataError
from fedlogit.results.detection import auroc, false_positive_rate

if TYPE_CHECKING:
    from fedlogit.results.runs import Run

__all__ = ["DERIVED", "DERIVED_BY_ROUND", "final_evidence", "over_rounds"]


def _rare_accuracy(run: Run) -> float:
    """Mean recall over the rare classes (CELM Table 2)."""
    rare = _given(run, "rare_classes", run.result.split.rare_classes)
    recall = run.result.final.per_class if run.result.final else []
    unseen = [c for c in rare if recall[c] is None]
    if unseen:
        raise DataError(f"{run.folder}: the test split has no sample of the rare class {unseen[0]}")
    return float(np.mean([recall[c] for c in rare]))


def _auroc(run: Run) -> float:
    """CELM Table 3."""
    return auroc(run.contributions(), _riders(run))


def _fpr(run: Run) -> float:
    """CELM Table 3: mean over rounds and thresholds."""
    return float(false_positive_rate(run.contributions(), _riders(run)).mean())


def _riders(run: Run) -> list[int]:
    return _given(run, "free_riders", run.result.split.free_riders)


def _given(run: Run, what: str, values: list[int]) -> list[int]:
    if not values:
        raise DataError(f"{run.folder}: partition {run.spec.partition.name} has no {what}")
    return values


def _evidence(run: Run) -> np.ndarray:
    """Return Q of every warm-up round, (rounds, clients, classes); 0 for classes not probed."""
    return np.nan_to_num(run.export("evidence")["evidence"])


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


def _distance(key: str, of: Callable[[Run], np.ndarray]) -> Callable[[Run], float]:
    """CELM Table 4: true counts against the evidence."""
    return lambda run: _distances(run.counts(), of(run))[key]


def _distance_at(key: str) -> Callable[[Run, int], float]:
    """CELM Table 4 with Q of one warm-up round; NaN after the last one."""

    def at(run: Run, number: int) -> float:
        q = _evidence(run)
        return _distances(run.counts(), q[number - 1])[key] if number <= len(q) else math.nan

    return at


def _from_uniform(key: str) -> Callable[[Run], float]:
    """CELM Table 4: true counts against a uniform distribution."""
    return lambda run: _distances(run.counts())[key]


def _distances(*counts: np.ndarray) -> dict[str, float]:
    from fedlogit.partition import distances  # few tables need it

    return distances(*counts)


def _shapley_correlation(run: Run) -> float:
    """Spearman's correlation of the last contributions with Shapley values; NaN if all equal."""
    values = run.export("shapley")["values"]
    last = run.contributions()[-1]
    if np.ptp(last) < 1e-9:
        return float("nan")
    return float(stats.spearmanr(last, values).statistic)


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


def _mebibytes_up(run: Run) -> float:
    """MiB that a client sends in a round (FedOL Table II, which calls them MB)."""
    return run.value("bytes_up") / 2**20


def _mebibytes_up_f64(run: Run) -> float:
    """The same if its numbers, which are of 4 bytes, had 8: what Table II prints for logits."""
    return 2 * _mebibytes_up(run)


def _ensemble(decide: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[Run], float]:
    """Accuracy of the final models together, from their logits on the test split."""

    def accuracy(run: Run) -> float:
        found = run.export("test_logits")
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


def _tail(column: str) -> Callable[[Run], float]:
    """Mean over the rounds of the tail: 100 of 3,000, of a text 600 (TallyTrain §4, Table 3).

    Rounds weigh alike, whether they were tested or not: one that was not has the value of the next
    test. All of the tail are tested where the runs are the paper's own.
    """

    def mean(run: Run) -> float:
        window = run.spec.evaluation.tail
        if not window:
            raise DataError(
                f"{run.folder}: {column} has no tail, as evaluation.tail = 0; give how many of the"
                " last rounds are one"
            )
        return over_rounds(run.rounds[column], window)

    return mean


def over_rounds(values: pd.Series, window: int) -> float:
    """Return the mean over the last rounds, a test standing for the rounds since the one before.

    Args:
        values: One for each round; NaN in rounds without a test.
        window: How many of the last rounds; all, if there are fewer.
    """
    return float(values.bfill().tail(window).mean())


def _peak(run: Run) -> float:
    """Largest mean accuracy of all peers in any round with a test (TallyTrain §4)."""
    return float(run.rounds["accuracy"].max())


def _payload(run: Run) -> float:
    """MB (10^6 bytes) of a peer in the whole run, by the convention of TallyTrain's tables.

    What it sends, and, of models that go through a server, also what it receives.
    """
    sent = sum(run.result.bytes.up.values())
    if run.spec.method.params.get("merge_cost") != "mesh":
        sent += run.result.bytes.down.get("model", 0)
    return sent / run.spec.clients / 1e6


def _payload_as(links: Callable[[int], int]) -> Callable[[Run], float]:
    """MB of a peer in the whole run if merges were counted otherwise, from the bytes it booked.

    What peers say about probes is counted as it was sent. `links` says how many copies of a model
    a merge costs one of so many peers.
    """

    def payload(run: Run) -> float:
        sent, peers = run.result.bytes.up, run.spec.clients
        said = sum(sent.values()) - sent.get("model", 0)
        mesh = run.spec.method.params.get("merge_cost") == "mesh"
        copies = peers - 1 if mesh else 1  # of a peer's model, that it sends in a merge
        models = sent.get("model", 0) / copies if copies else 0.0
        return (said + models * links(peers)) / peers / 1e6

    return payload


_star = _payload_as(lambda peers: 2)  # up and down
_mesh = _payload_as(lambda peers: peers - 1)


def _bytes_per_probe(run: Run) -> float:
    """Bytes that a peer sends each peer that hears it about a probe (TallyTrain Tables 1 and 5).

    0 where peers say nothing; in a text, each position is a probe.
    """
    params, sent = run.spec.method.params, run.result.bytes.up
    said = sum(sent.get(kind, 0) for kind in ("votes", "probabilities"))
    if not said:
        return 0.0
    if "probes_per_round" not in params:
        raise DataError(f"{run.folder}: method {run.spec.method.name} has no probes_per_round")
    others = run.spec.clients - 1
    hearers = {"mesh": others, "ring": min(2, others), "regular": params.get("degree")}
    rounds = run.spec.rounds - params["warm_up"]
    probes = rounds * params["probes_per_round"] * (run.spec.text.length if run.spec.text else 1)
    return said / (probes * run.spec.clients * hearers[params.get("topology", "mesh")])


def _reduction(run: Run) -> float:
    """How many times as long a soft label of four bytes a class is; NaN where nothing is said."""
    sent = _bytes_per_probe(run)
    classes = len(run.result.final.per_class) if run.result.final else 0
    return 4 * classes / sent if sent else math.nan


_KINDS = ("jsd", "emd", "emd_direct", "hellinger")
DERIVED: dict[str, Callable[[Run], float]] = {
    "rare_accuracy": _rare_accuracy,
    "auroc": _auroc,
    "fpr": _fpr,
    "shapley_correlation": _shapley_correlation,
    "seconds_probe": _seconds_probe,
    "probe_share": _probe_share,
    "mebibytes_up": _mebibytes_up,
    "mebibytes_up_f64": _mebibytes_up_f64,
    "lost_classes": _lost_classes,
    "mean_logits_accuracy": _ensemble(_mean_is_right),
    "vote_accuracy": _ensemble(_votes_are_right),
    "oracle_test_accuracy": _ensemble(_somebody_is_right),
    "tail_accuracy": _tail("accuracy"),
    "tail_perplexity": _tail("perplexity"),
    "peak_accuracy": _peak,
    "cross_peer_std": _tail("accuracy_std"),
    "payload_megabytes": _payload,
    "payload_gigabytes": lambda run: _payload(run) / 1e3,
    "payload_star_megabytes": _star,
    "payload_star_gigabytes": lambda run: _star(run) / 1e3,
    "payload_mesh_megabytes": _mesh,
    "payload_mesh_gigabytes": lambda run: _mesh(run) / 1e3,
    "bytes_per_probe": _bytes_per_probe,
    "reduction": _reduction,
    **{key: _distance(key, final_evidence) for key in _KINDS},
    **{f"{key}_mean": _distance(key, _mean_evidence) for key in _KINDS},
    **{f"{key}_shares": _distance(key, _class_shares) for key in _KINDS},
    **{f"{key}_uniform": _from_uniform(key) for key in _KINDS},
}
DERIVED_BY_ROUND: dict[str, Callable[[Run, int], float]] = {
    key: _distance_at(key) for key in _KINDS
}
"""Those that exist for a round, too, as ``jsd@3``."""
