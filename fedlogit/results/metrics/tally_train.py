"""Metrics of TallyTrain's tables: tails, peaks, payloads, and what its theory says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.results.metrics.metric import Metric
from fedlogit.results.runs.run import Run

__all__ = ["METRICS", "over_rounds"]


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


def _honest_anyway(run: Run) -> float:
    """Accuracy of the peers that are honest with as many Byzantine ones as votes tolerate.

    Fewer than ⌊N/2⌋ may be Byzantine (TallyTrain App. J), and those are the last ones; so these are
    the first N - ⌊N/2⌋ + 1, whether others are Byzantine or not: runs compare by the same peers. Of
    one peer none may be, and it is the one.

    Raises:
        DataError: if one of them was not tested, as where more peers are Byzantine.
    """
    tested, peers = run.result.final.per_client, run.spec.clients
    if not tested:
        return math.nan
    wanted = min(peers, peers - peers // 2 + 1)
    if len(tested) < wanted:
        raise DataError(
            f"{run.folder}: honest_anyway_accuracy is of the first {wanted} of {peers} peers, of"
            f" which {len(tested)} were tested; votes tolerate {peers - wanted} Byzantine peers"
        )
    return math.fsum(tested[:wanted]) / wanted


def _best_perplexity(run: Run) -> float:
    """Smallest mean perplexity of all peers in any round with a test (TallyTrain §4.6)."""
    return float(run.rounds["perplexity"].min())


def _payload(run: Run) -> float:
    """MB (10^6 bytes) of a peer in the whole run, by the convention of TallyTrain's tables.

    What it sends, and, of models that go through a server, also what it receives: the model, or
    what CGSV's server sends in its place, the largest entries of the mean gradient (its rewards).
    """
    sent = sum(run.result.bytes.up.values())
    if run.spec.method.params.get("merge_cost") != "mesh":
        sent += sum(run.result.bytes.down.get(kind, 0) for kind in ("model", "reward"))
    return sent / run.spec.clients / 1e6


def _payload_as(links: Callable[[int], int]) -> Callable[[Run], float]:
    """MB of a peer in the whole run if merges were counted otherwise, from the bytes it booked.

    Votes and soft labels are counted as they were sent. `links` gives the copies of a model that a
    merge costs each of so many peers.
    """

    def payload(run: Run) -> float:
        _all_present(run, "payload over other links")
        sent, peers = run.result.bytes.up, run.spec.clients
        about_probes = sum(sent.values()) - sent.get("model", 0)
        mesh = run.spec.method.params.get("merge_cost") == "mesh"
        copies = peers - 1 if mesh else 1  # of a peer's model, that it sends in a merge
        models = sent.get("model", 0) / copies if copies else 0.0
        return (about_probes + models * links(peers)) / peers / 1e6

    return payload


def _all_present(run: Run, what: str) -> None:
    """Refuse what is counted by the number of peers where some are absent.

    Raises:
        DataError: naming the run.
    """
    if run.spec.participation is not None:
        raise DataError(f"{run.folder}: {what} is of peers that are all there in every round")


def _payloads() -> Iterator[Metric]:
    """Yield the payloads of Tables 1, 2, 3 and 7, each in MB and in GB."""
    up_and_down, to_each_other = _payload_as(lambda peers: 2), _payload_as(lambda peers: peers - 1)
    for name, label, megabytes in (
        ("payload", "bytes of a peer in the whole run", _payload),
        ("payload_star", "bytes with averaging through a server", up_and_down),
        ("payload_mesh", "bytes with averaging from peer to peer", to_each_other),
    ):
        yield Metric(f"{name}_megabytes", f"{label} [MB]", megabytes, "MB", 2)
        yield Metric(f"{name}_gigabytes", f"{label} [GB]", _in_gigabytes(megabytes), "GB", 4)


def _in_gigabytes(megabytes: Callable[[Run], float]) -> Callable[[Run], float]:
    return lambda run: megabytes(run) / 1e3


def _bytes_per_probe(run: Run) -> float:
    """Bytes that a peer sends each peer that hears it about a probe (TallyTrain Tables 1 and 5).

    0 where peers send nothing about them; in a text, each position is a probe.
    """
    params, sent = run.spec.method.params, run.result.bytes.up
    about_probes = sum(sent.get(kind, 0) for kind in ("votes", "probabilities"))
    if not about_probes:
        return 0.0
    if "probes_per_round" not in params:
        raise DataError(f"{run.folder}: method {run.spec.method.name} has no probes_per_round")
    _all_present(run, "bytes per probe")
    others = run.spec.clients - 1
    hearers = {"mesh": others, "ring": min(2, others), "regular": params.get("degree")}
    rounds = run.spec.rounds - params["warm_up"]
    probes = rounds * params["probes_per_round"] * (run.spec.text.length if run.spec.text else 1)
    return about_probes / (probes * run.spec.clients * hearers[params.get("topology", "mesh")])


def _reduction(run: Run) -> float:
    """How many times as long a soft label of four bytes a class is; NaN where nothing is sent."""
    sent = _bytes_per_probe(run)
    # The classes of a text are its tokens, of which a partition has no counts; a run that counts
    # bytes only was not tested.
    classes = len(run.result.final.per_class) or run.counts().shape[1]
    return 4 * classes / sent if sent else math.nan


_ACCURACY, _PERPLEXITY = "test accuracy", "perplexity"

METRICS = (
    # §4: over the last 100 of 3,000 rounds
    Metric("tail_accuracy", f"{_ACCURACY}, mean over the last rounds", _tail("accuracy"), "share"),
    Metric(
        "tail_perplexity",
        f"{_PERPLEXITY}, mean over the last rounds",
        _tail("perplexity"),
        decimals=1,
    ),
    Metric("perplexity", _PERPLEXITY, decimals=1),
    Metric(
        "best_perplexity", f"{_PERPLEXITY} in the best tested round", _best_perplexity, decimals=1
    ),
    Metric(
        "honest_anyway_accuracy",
        f"{_ACCURACY} of the peers that are never Byzantine here",
        _honest_anyway,
        "share",
    ),
    Metric("peak_accuracy", f"{_ACCURACY} in the best tested round", _peak, "share"),
    Metric(
        "cross_peer_std",
        "standard deviation over peers, mean over the last rounds",
        _tail("accuracy_std"),
        "share",
    ),
    *_payloads(),
    Metric(
        "bytes_per_probe", "bytes that a peer sends about a probe", _bytes_per_probe, "bytes", None
    ),
    Metric("reduction", "bytes of a soft label divided by the bytes sent", _reduction),
    # §3.3: columns of tested rounds (see `fedlogit.methods.voting_theory`)
    Metric("theory_disagreement", "mean KL divergence of pairs of peers", unit="nats", decimals=3),
    Metric("theory_correlation", "correlation of peers' correctness", decimals=2),
    Metric("theory_peer_accuracy", "mean accuracy of peers on probes", unit="share"),
    Metric("theory_peer_least", "minimum accuracy of a peer on probes", unit="share"),
    Metric("theory_vote_accuracy", "vote accuracy on probes", unit="share"),
    Metric("theory_soft_accuracy", "accuracy of the mean softmax on probes", unit="share"),
    Metric("theory_bound", "bound of Proposition 1", unit="share"),
    Metric("theory_variance_hard", "gradient variance with votes as target", decimals=2),
    Metric("theory_variance_soft", "gradient variance with the mean softmax as target", decimals=2),
)
