"""Which settings of TallyTrain go together, and with which runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

from fedlogit import data
from fedlogit.aggregation.robust import trims_to
from fedlogit.aggregation.votes import bits_per_vote
from fedlogit.errors import FedlogitError
from fedlogit.federation.topology import check_degree
from fedlogit.spec import RunSpec

__all__ = ["check_settings"]


def check_settings(params: Mapping[str, Any], changed: Collection[str], spec: RunSpec) -> None:
    """Refuse settings that contradict each other, or the run.

    Args:
        params: All parameters of `tally_train`.
        changed: Which of them are not at their default.
        spec: The run.

    Raises:
        FedlogitError: naming the setting, its value, and what would be right.
    """
    method = SimpleNamespace(**params)
    for key, fits, wanted in (
        *_of_the_channel(method, spec),
        *_of_probes(method, spec),
        *_of_adversaries(method, spec),
        *_of_the_rule(method, spec),
        *_without_effect(method, changed, spec),
    ):
        if not fits:
            raise FedlogitError(f"method tally_train: {key} = {getattr(method, key)!r}: {wanted}")
    if "theory" in spec.export and spec.text:
        raise FedlogitError(
            f"export = 'theory': is measured on samples of one class; dataset {spec.dataset} has"
            " one at each position"
        )
    if method.topology == "regular":
        check_degree(spec.clients, method.degree)


Rules = list[tuple[str, bool, str]]


def _of_the_channel(method: SimpleNamespace, spec: RunSpec) -> Rules:
    classes = spec.text.vocabulary if spec.text else data.card(spec.dataset).classes
    if method.signal in ("votes", "top_k"):
        bits_per_vote(classes, packed=method.packed)
    votes = method.signal == "votes"
    return [
        ("asymmetry", votes or not method.asymmetry, "only votes can be weighed so"),
        ("k", method.k <= classes, f"give at most the {classes} classes"),
        ("packed", not method.packed or method.signal in ("votes", "top_k"), "needs votes to pack"),
        (
            "margin_memory",
            method.margin_memory is None or method.decay_rounds is None,
            "λ follows either the margin or decay_rounds; leave one of them out",
        ),
        (
            "rule",
            method.rule == "mean" or method.signal in ("probabilities", "top_k"),
            "is for soft labels; votes are tallied",
        ),
        (
            "merge_every",
            method.merge_every is None or len(set(map(str, spec.models))) == 1,
            "different architectures have no average; give all peers one model, or leave it out",
        ),
        (
            "proximal",
            not method.proximal or len(set(map(str, spec.models))) == 1,
            "needs one architecture for all peers",
        ),
    ]


def _of_probes(method: SimpleNamespace, spec: RunSpec) -> Rules:
    public = spec.public
    elsewhere = public is not None and public.dataset is not None
    anchors = public.anchors if public else 0
    return [
        (
            "label_weight",
            not elsewhere or not method.label_weight or method.anchors_per_round > 0,
            f"nobody knows the labels of probes from {public and public.dataset}; give"
            " label_weight=0.0, or public.anchors and anchors_per_round",
        ),
        (
            "anchors_per_round",
            method.anchors_per_round <= min(anchors, method.probes_per_round),
            f"give at most public.anchors ({anchors}) and probes_per_round"
            f" ({method.probes_per_round})",
        ),
    ]


def _of_adversaries(method: SimpleNamespace, spec: RunSpec) -> Rules:
    attacked = method.adversaries > 0
    return [
        (
            "adversaries",
            method.adversaries < spec.clients,
            f"give less than the {spec.clients} clients",
        ),
        (
            "adversaries",
            not attacked or method.signal != "none",
            "there is no message to falsify with signal = 'none'",
        ),
        (
            "adversaries",
            not attacked or method.merge_every is None,
            "they falsify messages about probes only; give no merge_every",
        ),
    ]


def _of_the_rule(method: SimpleNamespace, spec: RunSpec) -> Rules:
    """A trimmed mean that is another rule: two rows of a table would be one."""
    if method.rule != "trimmed_mean":
        return []
    neighbours = {"mesh": spec.clients, "ring": 3, "regular": method.degree + 1}
    received = min(spec.clients, neighbours[method.topology])
    rule = trims_to(received, method.trim)
    others = f", or trim from {1 / received:.3g} to less than {(received - 1) // 2 / received:.3g}"
    return [
        (
            "trim",
            rule == "trimmed_mean",
            f"of the {received} messages that a peer gets it is the {rule}; give rule = {rule!r}"
            + (others if received > 4 else ""),  # of four at most two are left
        )
    ]


def _without_effect(method: SimpleNamespace, changed: Collection[str], spec: RunSpec) -> Rules:
    """Settings that would be ignored: who gives one expects it to matter."""
    silent = method.signal == "none"
    rules = [
        (key, not silent, "nothing is sent with signal = 'none'")
        for key in ("topology", "emphasis", "margin_memory", "decay_rounds")
    ]
    rules += [
        (key, method.adversaries > 0, "there are no adversaries; give some")
        for key in ("attack", "magnitude")
    ]
    rules += [
        ("degree", method.topology == "regular", "is for topology = 'regular'"),
        ("trim", method.rule == "trimmed_mean", "is for rule = 'trimmed_mean'"),
        ("k", method.signal == "top_k", "is for signal = 'top_k'"),
        ("merge_cost", method.merge_every is not None, "nothing is merged; give merge_every"),
        ("magnitude", method.signal != "votes", "a vote has none"),
    ]
    rules += [
        (key, method.label_weight < 1, "the consensus weighs nothing with label_weight = 1.0")
        for key in ("emphasis", "decay_rounds")
    ]
    every = method.merge_every or 1
    merges = spec.rounds - spec.rounds % every > method.warm_up
    return [(key, fits or key not in changed, why) for key, fits, why in rules] + [
        (
            "merge_every",
            merges or method.merge_every is None,
            f"no multiple of it is among the rounds {method.warm_up + 1} to {spec.rounds}",
        )
    ]
