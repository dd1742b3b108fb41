"""The settings of TallyTrain, and which of them go together, and with which runs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedlogit import data
from fedlogit.aggregation.attacks import Attack
from fedlogit.aggregation.robust import Rule, effective_rule
from fedlogit.aggregation.votes import bits_per_vote
from fedlogit.errors import FedlogitError
from fedlogit.federation.topology import Topology, check_degree
from fedlogit.methods.base import Method, number_of_adversaries
from fedlogit.methods.probe_checks import check_probing
from fedlogit.spec import RunSpec

__all__ = ["TallySettings"]

Rules = list[tuple[str, bool, str]]  # a setting, whether it fits, and what would be right


class TallySettings(Method):
    """The parameters of `tally_train`: the symbols of Algorithm 1, and the paper's extensions.

    Attributes:
        signal: What a peer sends about a probe: ``votes``, its class; ``probabilities``, its whole
            softmax; ``top_k``, its largest probabilities; ``none``.
        k: Ranks of ``top_k`` (appendix E).
        probes_per_round: B_sample, probes of a round, the same for all peers.
        warm_up: W, rounds before peers may influence each other.
        label_weight: α, the weight of the probes' true labels (§3.4: 0.5); 0 is unlabelled.
        decay_rounds: T, rounds after warm-up in which the consensus fades to 0; None keeps it.
        merge_every: M, rounds between merges of all models, after warm-up; None never merges.
        merge_cost: How the bytes of a merge are counted: as a ``star``, where a peer sends its
            model and receives one, or as a ``mesh``, where it sends it to every other peer.
        packed: Count ⌈log2 C⌉ bits a vote, not whole bytes.
        emphasis: β_dis, more weight on probes that peers disagree on (appendix D: 2).
        asymmetry: β_asy, more weight on peers that disagree with the others (appendix D: 0.5).
        proximal: μ of a pull towards the parameters after the last merge (FedProx).
        anchors_per_round: Of a round's probes, how many are labelled anchors, where the public set
            is another data set's with anchors (appendix K, arm C: 4); α weighs their labels only.
        margin_memory: ρ, from 0 to 1: λ_r is the average of the votes' margins so far, in which
            the past weighs ρ and the round 1 - ρ. None leaves λ_r to `decay_rounds`.
        topology: Which peers are connected: a ``mesh`` of all, a ``ring``, or a random ``regular``
            graph.
        degree: Neighbours of a peer in a regular graph.
        rule: How soft labels are combined: ``mean``, ``trimmed_mean``, or ``median``.
        trim: Share of peers that a trimmed mean leaves out at each end.
        adversaries: How many of the last peers send false messages about probes. They are not
            tested.
        attack: What they send; see `fedlogit.aggregation.attacks`.
        magnitude: What an adversary's soft label has at its class; an honest one has at most 1.
    """

    signal: Literal["votes", "probabilities", "top_k", "none"] = "votes"
    k: Annotated[int, Field(gt=0)] = 1
    probes_per_round: Annotated[int, Field(gt=0)] = 16
    warm_up: Annotated[int, Field(ge=0)] = 300
    label_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    decay_rounds: Annotated[int, Field(gt=0)] | None = None
    merge_every: Annotated[int, Field(gt=0)] | None = None
    merge_cost: Literal["star", "mesh"] = "star"
    packed: bool = False
    emphasis: Annotated[float, Field(ge=0)] = 0.0
    asymmetry: Annotated[float, Field(ge=0, le=1)] = 0.0
    proximal: Annotated[float, Field(ge=0)] = 0.0
    anchors_per_round: Annotated[int, Field(ge=0)] = 0
    margin_memory: Annotated[float, Field(ge=0, lt=1)] | None = None
    topology: Topology = "mesh"
    degree: Annotated[int, Field(gt=0)] = 4
    rule: Rule = "mean"
    trim: Annotated[float, Field(ge=0, lt=0.5)] = 0.2
    adversaries: Annotated[int, Field(ge=0)] = 0
    attack: Attack = "confident"
    magnitude: Annotated[float, Field(gt=0)] = 1.0

    @property
    def adversarial_clients(self) -> int:
        """Peers that are not tested."""
        return self.adversaries

    @property
    def sends_predictions(self) -> bool:
        """Whether peers exchange messages about probes, and never models."""
        return self.signal != "none" and self.merge_every is None

    @property
    def sends_soft_predictions(self) -> bool:
        """Whether messages about probes have probabilities, and not classes alone."""
        return self.signal == "probabilities" or (self.signal == "top_k" and self.k > 1)

    @property
    def distils_soft_targets(self) -> bool:
        """The mean of probabilities; shares of votes are no softmax of logits."""
        return self.sends_soft_predictions and self.label_weight < 1

    @property
    def learns_public_labels(self) -> bool:
        """Those of the probes, if they weigh anything."""
        return self.label_weight > 0

    @property
    def uses_proximal_term(self) -> bool:
        """Whether μ is not 0."""
        return self.proximal > 0

    def check(self, spec: RunSpec) -> None:
        """Refuse settings that contradict each other, or the run.

        Raises:
            FedlogitError: naming the setting, its value, and what would be right.
        """
        check_probing(self.probes_per_round, self.warm_up, spec)
        for key, fits, wanted in (
            *_channel_rules(self, spec),
            *_probe_rules(self, spec),
            *_adversary_rules(self, spec),
            *_trim_rules(self, spec),
            *_no_effect_rules(self, spec),
        ):
            if not fits:
                value = getattr(self, key)
                raise FedlogitError(f"method tally_train: {key} = {value!r}: {wanted}")
        if "theory" in spec.export:
            _check_theory(self, spec)
        if self.topology == "regular":
            check_degree(spec.clients, self.degree)


def _check_theory(settings: TallySettings, spec: RunSpec) -> None:
    if spec.text:
        raise FedlogitError(
            f"export = 'theory' needs one class a sample; dataset {spec.dataset} is a text,"
            " with a target at each position"
        )
    if number_of_adversaries(spec, settings):
        raise FedlogitError("export = 'theory' is of honest peers; give no adversaries")


def _channel_rules(settings: TallySettings, spec: RunSpec) -> Rules:
    classes = spec.text.vocabulary if spec.text else data.card(spec.dataset).classes
    if settings.signal in ("votes", "top_k"):
        bits_per_vote(classes, packed=settings.packed)
    votes = settings.signal == "votes"
    return [
        ("asymmetry", votes or not settings.asymmetry, "only votes can be weighed so"),
        ("k", settings.k <= classes, f"give at most the {classes} classes"),
        (
            "packed",
            not settings.packed or settings.signal in ("votes", "top_k"),
            "needs votes to pack",
        ),
        (
            "margin_memory",
            settings.margin_memory is None or settings.decay_rounds is None,
            "λ follows either the margin or decay_rounds; leave one of them out",
        ),
        (
            "rule",
            settings.rule == "mean" or settings.signal in ("probabilities", "top_k"),
            "is for soft labels; votes are tallied",
        ),
        (
            "merge_every",
            settings.merge_every is None or len(set(map(str, spec.models))) == 1,
            "different architectures have no average; give all peers one model, or leave it out",
        ),
        (
            "proximal",
            not settings.proximal or len(set(map(str, spec.models))) == 1,
            "needs one architecture for all peers",
        ),
    ]


def _probe_rules(settings: TallySettings, spec: RunSpec) -> Rules:
    public = spec.public
    elsewhere = public is not None and public.dataset is not None
    anchors = public.anchors if public else 0
    return [
        (
            "label_weight",
            not elsewhere or not settings.label_weight or settings.anchors_per_round > 0,
            f"nobody knows the labels of probes from {public and public.dataset}; give"
            " label_weight=0.0, or public.anchors and anchors_per_round",
        ),
        (
            "anchors_per_round",
            settings.anchors_per_round <= min(anchors, settings.probes_per_round),
            f"give at most public.anchors ({anchors}) and probes_per_round"
            f" ({settings.probes_per_round})",
        ),
    ]


def _adversary_rules(settings: TallySettings, spec: RunSpec) -> Rules:
    attacked = settings.adversaries > 0
    return [
        (
            "adversaries",
            settings.adversaries < spec.clients,
            f"give less than the {spec.clients} clients",
        ),
        (
            "adversaries",
            not attacked or settings.signal != "none",
            "there is no message to falsify with signal = 'none'",
        ),
        (
            "adversaries",
            not attacked or settings.merge_every is None,
            "they falsify messages about probes only; give no merge_every",
        ),
    ]


def _trim_rules(settings: TallySettings, spec: RunSpec) -> Rules:
    """Refuse a trim that makes the mean or the median: two rows of a table would be one run."""
    if settings.rule != "trimmed_mean":
        return []
    neighbours = {"mesh": _peers(spec), "ring": 3, "regular": settings.degree + 1}
    received = min(spec.clients, neighbours[settings.topology])
    rule = effective_rule(received, settings.trim)
    others = f", or trim from {1 / received:.3g} to less than {(received - 1) // 2 / received:.3g}"
    return [
        (
            "trim",
            rule == "trimmed_mean",
            f"of the {received} messages that a peer gets it is the {rule}; give rule = {rule!r}"
            + (others if received > 4 else ""),  # of four at most two are left
        )
    ]


def _peers(spec: RunSpec) -> int:
    """Return how many peers are there in a round; all of them where that differs by the round."""
    participation = spec.participation
    if participation is None or participation.schedule:
        return spec.clients
    return participation.fewest(spec.clients, spec.rounds)[1]


def _no_effect_rules(settings: TallySettings, spec: RunSpec) -> Rules:
    """Settings that would be ignored: who gives one expects it to matter."""
    changed = settings.changed()
    silent = settings.signal == "none"
    rules = [
        (key, not silent, "nothing is sent with signal = 'none'")
        for key in ("topology", "emphasis", "margin_memory", "decay_rounds")
    ]
    rules += [
        (key, settings.adversaries > 0, "there are no adversaries; give some")
        for key in ("attack", "magnitude")
    ]
    rules += [
        ("degree", settings.topology == "regular", "is for topology = 'regular'"),
        ("trim", settings.rule == "trimmed_mean", "is for rule = 'trimmed_mean'"),
        ("k", settings.signal == "top_k", "is for signal = 'top_k'"),
        ("merge_cost", settings.merge_every is not None, "nothing is merged; give merge_every"),
        (
            "magnitude",
            settings.signal == "probabilities" or (settings.signal == "top_k" and settings.k > 1),
            "a vote has none",
        ),
    ]
    rules += [
        (key, settings.label_weight < 1, "the consensus weighs nothing with label_weight = 1.0")
        for key in ("emphasis", "decay_rounds", "margin_memory", "asymmetry", "rule", "adversaries")
    ]
    every = settings.merge_every or 1
    merges = spec.rounds - spec.rounds % every > settings.warm_up
    return [(key, fits or key not in changed, why) for key, fits, why in rules] + [
        (
            "merge_every",
            merges or settings.merge_every is None,
            f"no multiple of it is among the rounds {settings.warm_up + 1} to {spec.rounds}",
        )
    ]
