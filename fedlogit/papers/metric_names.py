"""Names of metrics, checked before runs are trained for them.

A metric is one that `fedlogit.results.metrics` knows, or any column of ``rounds.csv``: those that
every run has, and those that methods log. Which columns a user's own method logs is known once it
has run, so such a name is refused unless the paper's file has a label of it, which says that it is
meant: a misspelt metric would fail its table after all training.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable

from fedlogit.errors import FedlogitError, did_you_mean, shown

__all__ = [
    "KNOWN_METRICS",
    "LOGGED_COLUMNS",
    "SHARE_METRICS",
    "TESTED_COLUMNS",
    "check_metric",
    "is_counted",
    "is_share",
    "unknown_metric",
]

SHARE_METRICS = frozenset(
    {
        "accuracy",
        "accuracy_at_best_validation",
        "accuracy_std",
        "agreement",
        "auroc",
        "balanced_accuracy",
        "cross_peer_std",
        "ece",
        "fpr",
        "honest_anyway_accuracy",
        "mean_logits_accuracy",
        "oracle_accuracy",
        "oracle_test_accuracy",
        "peak_accuracy",
        "personalized_accuracy",
        "probe_share",
        "rare_accuracy",
        "tail_accuracy",
        "theory_bound",
        "theory_peer_accuracy",
        "theory_peer_least",
        "theory_soft_accuracy",
        "theory_vote_accuracy",
        "validation_accuracy",
        "vote_accuracy",
        "weight_max",
        "weight_on_holders",
    }
)
"""Those of `KNOWN_METRICS` that lie between 0 and 1."""

KNOWN_METRICS = SHARE_METRICS | {
    "best_perplexity",
    "bytes_down",
    "bytes_per_probe",
    "bytes_sent",
    "bytes_up",
    "emd",
    "emd_direct",
    "emd_direct_mean",
    "emd_direct_shares",
    "emd_direct_uniform",
    "emd_mean",
    "emd_shares",
    "emd_uniform",
    "hellinger",
    "hellinger_mean",
    "hellinger_shares",
    "hellinger_uniform",
    "jsd",
    "jsd_mean",
    "jsd_shares",
    "jsd_uniform",
    "log_likelihood",
    "loss_test",
    "lost_classes",
    "mebibytes_up",
    "mebibytes_up_f64",
    "payload_gigabytes",
    "payload_megabytes",
    "payload_mesh_gigabytes",
    "payload_mesh_megabytes",
    "payload_star_gigabytes",
    "payload_star_megabytes",
    "perplexity",
    "probe_contrast_absent",
    "probe_contrast_present",
    "reduction",
    "seconds",
    "seconds_probe",
    "shapley_correlation",
    "tail_perplexity",
    "theory_correlation",
    "theory_disagreement",
    "theory_variance_hard",
    "theory_variance_soft",
}
"""The names of `fedlogit.results.metrics.METRICS`, which lies above this package."""

LOGGED_COLUMNS = frozenset(
    {
        "accuracy_max",
        "accuracy_min",
        "accuracy_present",
        "classes_without_evidence",
        "client_public_accuracy",
        "consensus_accuracy",
        "consensus_weight",
        "contribution_0",
        "ensemble_accuracy",
        "evidence",
        "groups",
        "loss_distil",
        "loss_private",
        "loss_server",
        "loss_students",
        "loss_teachers",
        "no_positive_share",
        "present",
        "pseudo_accuracy_0",
        "pseudo_share_0",
        "round",
        "seconds_clients",
        "seconds_test",
        "selected_share",
        "server_public_accuracy_0",
        "target_accuracy",
        "target_share",
        "theory_margin",
        "weight_over_99",
        "with_density",
    }
)

TESTED_COLUMNS = frozenset(
    {
        "accuracy",
        "accuracy_max",
        "accuracy_min",
        "accuracy_present",
        "accuracy_std",
        "balanced_accuracy",
        "ece",
        "loss_test",
        "perplexity",
        "personalized_accuracy",
        "seconds_test",
        "validation_accuracy",
    }
)
"""Columns of ``rounds.csv`` that tests add, so that a round without a test has none of them."""
"""The other columns of ``rounds.csv``, of any run and of the library's methods.

Of numbered ones that of number 0 stands for all. There are those of one kind of message, too, such
as ``bytes_up.logits``.
"""

_NUMBER = re.compile(r"(?<=_)(0|[1-9][0-9]{0,8})$")
_OF_ONE_KIND = re.compile(r"bytes_(up|down)\.\w+")
_ALIKE = 0.85  # of 1: one letter of seven is wrong, or two are swapped
_ROUND = re.compile("[0-9]{1,10}")  # more digits than a run may have rounds
_SHORTEST = 3  # letters of an abbreviation


def is_share(name: str) -> bool:
    """Return whether a metric lies between 0 and 1, so that per cent makes sense.

    Args:
        name: Such as ``accuracy`` or ``accuracy@10``; also a column that a method logs.
    """
    column = name.partition("@")[0]
    if column in KNOWN_METRICS:
        return column in SHARE_METRICS
    return "accuracy" in column or column.startswith("weight")


def is_counted(metric: str) -> bool:
    """Return whether a metric is of messages alone: of bytes, whatever the samples are."""
    return metric.startswith(("bytes_", "mebibytes_", "payload_")) or metric == "reduction"


def check_round(where: str, name: str) -> None:
    """Refuse a metric at what is no round.

    Args:
        where: The key or option.
        name: Such as ``accuracy`` or ``accuracy@10``.

    Raises:
        FedlogitError: one line, with what would be right.
    """
    _, at, when = name.partition("@")
    if at and not (_ROUND.fullmatch(when) and int(when)):
        raise FedlogitError(
            f"{where} = {shown(name)}: should be a metric and a round from 1, such as accuracy@10"
        )


def check_metric(where: str, name: str, labels: Collection[str]) -> None:
    """Refuse a name that is no metric's, no column's of the library's methods, and has no label.

    Args:
        where: The key of the paper's file.
        name: Such as ``accuracy`` or ``accuracy@10``.
        labels: The names that the paper's file has a label for.

    Raises:
        FedlogitError: one line, with the nearest metric if there is one, and what a column that a
            method of one's own logs needs.
    """
    check_round(where, name)
    column = name.partition("@")[0]
    if column in KNOWN_METRICS or _is_logged(column) or {column, name} & {*labels}:
        return
    logged = f"if a method logs the column {shown(column)}, give it a name under 'labels'"
    if meant := _meant_metric(column, KNOWN_METRICS | LOGGED_COLUMNS):
        raise FedlogitError(
            f"{where}: unknown metric {shown(name)}; did you mean {meant!r}? ({logged})"
        )
    if not re.fullmatch(r"[\w.-]+", column):
        raise FedlogitError(
            f"{where} = {shown(name)}: should be a metric or a column of rounds.csv, such as"
            f" balanced_accuracy or accuracy@10 ({logged})"
        )
    raise FedlogitError(f"{where}: unknown metric {shown(name)} ({logged})")


def _is_logged(column: str) -> bool:
    """Return whether a column is of any run, or one that the library's own methods log."""
    known = not LOGGED_COLUMNS.isdisjoint((column, _NUMBER.sub("0", column)))
    return known or _OF_ONE_KIND.fullmatch(column) is not None


def _meant_metric(column: str, names: Iterable[str]) -> str | None:
    """Return the name that `column` is, word by word, with a letter wrong or cut short.

    So ``bal_acc`` is ``balanced_accuracy``; but ``loss`` is not ``loss_test``, and
    ``target_accuracy`` is not ``rare_accuracy``.
    """
    words = column.split("_")
    for name in sorted(names):
        others = name.split("_")
        if name != column and len(words) == len(others) and all(map(_stands_for, words, others)):
            return name
    return None


def _stands_for(word: str, other: str) -> bool:
    """Return whether a word is another one, possibly with a letter wrong or cut short."""
    if word == other or (len(word) >= _SHORTEST and other.startswith(word)):
        return True
    return difflib.SequenceMatcher(None, word, other).ratio() >= _ALIKE


def unknown_metric(name: str, names: Iterable[str], where: str) -> FedlogitError:
    """Return the error for a metric that a run does not have: the nearest one, and each once.

    Args:
        name: The metric.
        names: Those that the run has.
        where: What the error begins with, such as the run: others may have the metric.
    """
    known = sorted(set(names))
    column = name.partition("@")[0]
    meant = _meant_metric(column, known)
    hint = f"; did you mean {meant!r}?" if meant else did_you_mean(column, known)
    return FedlogitError(f"{where}unknown metric {shown(name)}{hint} (one of: {', '.join(known)})")
