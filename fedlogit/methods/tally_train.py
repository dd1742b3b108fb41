"""TallyTrain: peers vote on public probes (TallyTrain §3.4, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from fedlogit.aggregation.attacks import Attack, corrupt, false_votes
from fedlogit.aggregation.robust import Rule, combine
from fedlogit.aggregation.votes import (
    asymmetric,
    ballots,
    emphasis,
    margin,
    pack,
    tally,
    unpack,
)
from fedlogit.federation import Federation
from fedlogit.federation.topology import Topology, adjacency
from fedlogit.methods.base import Method
from fedlogit.methods.model_federation import model_message, model_messages
from fedlogit.methods.probe_checks import check_probing
from fedlogit.methods.tally_settings import check_settings
from fedlogit.methods.voting_theory import measure
from fedlogit.spec import RunSpec

__all__ = ["TallyTrain"]


class TallyTrain(Method):
    """Two axes: what peers say about shared probes (A), and how often models are merged (B).

    The rows of the paper's tables are points on them::

        A.1, labelled probes        tally_train
        A.2, unlabelled, decay      tally_train(label_weight=0.0, decay_rounds=200)
        bridge                      tally_train(merge_every=200)
        FedMD in the same loss      tally_train(signal='probabilities')
        RC-FD                       tally_train(signal='top_k', k=3)
        no consensus                tally_train(signal='none', label_weight=1.0)
        FedAvg-fa200                tally_train(signal='none', label_weight=0.0, warm_up=0,
                                                merge_every=200)
        FedProx-fa200               the same with proximal=0.001

    Of the paper's extensions (§5.3, appendix J) there are sparse gossip (`topology`), a weight that
    follows the voting margin (`margin_memory`), and Byzantine peers (`adversaries`, `attack`)
    against other ways to combine (`rule`).

    Absent clients: peers that are present send to their neighbours that are present, over the links
    that the graph of all peers has; one without such a neighbour hears itself. A merge is of those
    present, and only they take it over. The model of a peer that is absent, and what the proximal
    term pulls it to, wait; one that comes late has its own first weights until it is in a merge.

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

    needs_public: ClassVar[bool] = True
    sequences: ClassVar[bool] = True
    foreign_public: ClassVar[bool] = True
    absences: ClassVar[bool] = True
    exports: ClassVar[frozenset[str]] = frozenset({"theory"})

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
    def uses_proximal_term(self) -> bool:
        """Whether μ is not 0."""
        return self.proximal > 0

    def check(self, spec: RunSpec) -> None:
        """Refuse settings that do not fit the run."""
        check_probing(self.probes_per_round, self.warm_up, spec)
        check_settings(self.params(), self.changed().keys(), spec)

    def init(self, fed: Federation) -> None:
        """FedProx's first anchor is each peer's own start."""
        if self.proximal:
            fed.server_state["tally/anchor"] = torch.stack([c.vector.detach() for c in fed.clients])

    def round(self, fed: Federation, r: int) -> None:
        """Do round r of Algorithm 1."""
        anchors = fed.server_state.get("tally/anchor")
        centers = None if anchors is None else anchors[fed.present]
        fed.train_private(proximal_mu=self.proximal, prox_centers=centers)
        if r > self.warm_up and (self.signal != "none" or self.label_weight):
            self.learn_from_probes(fed, r)
        if "theory" in fed.spec.export and fed.spec.tests_in(r):
            fed.log(**measure(fed, self.probes_per_round))  # before a merge makes all peers equal
        if r > self.warm_up and self.merge_every and r % self.merge_every == 0:
            self.merge(fed)

    def consensus_weight(self, r: int) -> float:
        """Return λ_r."""
        if self.decay_rounds is None:
            return 1.0
        return max(0.0, 1 - (r - self.warm_up) / self.decay_rounds)

    def follow_margin(self, fed: Federation, consensus: torch.Tensor) -> float:
        """Return λ_r as the moving average of the margin by which the first class leads (§5.3)."""
        assert self.margin_memory is not None
        now = margin(consensus).double().mean()
        before = fed.server_state.get("tally/margin", now)
        average = self.margin_memory * before + (1 - self.margin_memory) * now
        fed.server_state["tally/margin"] = average
        return float(average)

    def learn_from_probes(self, fed: Federation, r: int) -> None:
        """Do one step on α CE(f, y) + λ_r (1 - α) KL(H̄ ‖ f).

        Votes are sent also where λ_r is 0, as the paper's Table 7 counts them; the step is left out
        where both weights are.
        """
        probes = fed.probes(self.probes_per_round, self.anchors_per_round)
        soft, targets = 0.0, None
        if self.signal != "none":
            heard = self.heard(fed, fed.claimed(fed.logits(probes), "probes"))
            consensus = self.consensus(fed, heard)
            right = float(fed.accuracy(consensus, probes).mean())
            if right == right:  # NaN where nobody knows the labels
                fed.log(consensus_accuracy=right)
            faded = self.margin_memory is None
            weight = self.consensus_weight(r) if faded else self.follow_margin(fed, consensus)
            fed.log(consensus_weight=weight)
            soft = weight * (1 - self.label_weight)
            uniform = self.consensus(fed, heard, uniform=True) if self.asymmetry else consensus
            targets = consensus * (soft * emphasis(uniform, self.emphasis))[..., None]
        if self.label_weight or soft:
            fed.distil(probes, targets, label_weight=self.label_weight, once=True)

    def heard(self, fed: Federation, logits: torch.Tensor) -> list[torch.Tensor]:
        """Exchange messages about probes, and return what each peer hears.

        Args:
            fed: The peers.
            logits: (peers, probes, classes), or (peers, probes, T, classes) of sequences, each of
                whose T positions is then voted on.

        Returns:
            For each peer the messages of its neighbours and of itself, (heard, probes, …); a single
            entry where all are connected and so hear the same.
        """
        votes = logits.argmax(-1)
        agreement = (votes == votes.mode(0).values).double().mean()
        fed.log(agreement=float(agreement))
        neighbours = self.neighbours(fed, len(logits))
        links = int(neighbours.sum()) - len(neighbours)  # without those from a peer to itself
        received = self.send(fed, self.messages(fed, logits), links)
        if neighbours.all():
            return [received]
        return [received[row] for row in torch.from_numpy(neighbours).to(received.device)]

    def consensus(
        self, fed: Federation, heard: Sequence[torch.Tensor], *, uniform: bool = False
    ) -> torch.Tensor:
        """Return what peers make of what they `heard`: H̄, or H̃ where votes are weighted.

        Args:
            fed: The peers.
            heard: As from `heard`.
            uniform: H̄ in any case, in which all votes count alike.

        Returns:
            Distributions (probes, classes), or (probes, T, classes); where not all peers are
            connected, one for each peer, (peers, probes, …).
        """
        asymmetry = 0.0 if uniform else self.asymmetry
        made = [self.combine(messages, fed.classes, asymmetry) for messages in heard]
        return torch.stack(made) if len(made) > 1 else made[0]

    def neighbours(self, fed: Federation, peers: int) -> np.ndarray:
        """Return which of so many peers are connected: of those present, as in the graph of all."""
        if fed.spec.participation is None:
            return adjacency(self.topology, peers, self.degree, fed.spec.seed)
        graph = adjacency(self.topology, len(fed.everybody), self.degree, fed.spec.seed)
        places = fed.present.numpy()
        return graph[np.ix_(places, places)]

    def adversaries_present(self, fed: Federation) -> int:
        """Return how many of the peers, which are the last of them, send false messages."""
        if fed.spec.participation is None or not self.adversaries:
            return self.adversaries
        return int((fed.present >= len(fed.everybody) - self.adversaries).sum())

    def messages(self, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
        """Return what each peer sends: a vote, (peers, probes), or a soft label like `logits`.

        Votes stay class numbers: as rows of zeros with a one they would be as large as logits.
        """
        votes = self.signal == "votes"
        honest = logits.argmax(-1) if votes else ballots(logits, self.signal, self.k)
        false = self.adversaries_present(fed)
        if not false:
            return honest
        drawn = self.lies(fed, honest.shape[1:] if votes else honest.shape[1:-1])
        if votes:
            return false_votes(honest, fed.classes, false, self.attack, drawn)
        return corrupt(honest, false, self.attack, drawn, self.magnitude)

    def lies(self, fed: Federation, probes: torch.Size) -> torch.Tensor:
        """Return a class at random for each adversary that is there and probe, whoever is absent.

        Args:
            fed: The peers.
            probes: The shape of a peer's votes.

        Returns:
            int64 (adversaries that are there, *probes).
        """
        generator = fed.torch_rng("lies", fed.round)
        drawn = torch.randint(fed.classes, (self.adversaries, *probes), generator=generator)
        places = fed.present - (len(fed.everybody) - self.adversaries)
        return drawn[places[places >= 0]]

    def send(self, fed: Federation, messages: torch.Tensor, links: int) -> torch.Tensor:
        """Send each peer's message to its neighbours, and return what they read in it.

        Args:
            fed: The peers.
            messages: As from `messages`; a false one is as long as an honest one.
            links: How many ordered pairs of peers are connected.
        """
        if self.signal == "votes":
            return self.send_votes(fed, messages, links)
        if self.signal == "probabilities":
            return fed.exchange("probabilities", messages, links=links)
        best = messages.topk(self.k, dim=-1)
        named, values = self.send_votes(fed, best.indices, links), best.values
        if self.k > 1:
            values = fed.exchange("probabilities", values, links=links)
        else:  # the single best needs no probability
            values = torch.ones_like(values)
        return torch.zeros_like(messages).scatter_(-1, named, values)

    def send_votes(self, fed: Federation, votes: torch.Tensor, links: int) -> torch.Tensor:
        """Send votes, (peers, …), in as few bytes as `packed` allows; return them as read."""
        rows = votes.flatten(1)
        packed = pack(rows, fed.classes, packed=self.packed)
        received = fed.exchange("votes", packed, links=links)
        return unpack(received, rows.shape[1], fed.classes, packed=self.packed).view_as(votes)

    def combine(self, received: torch.Tensor, classes: int, asymmetry: float) -> torch.Tensor:
        """Return what a peer makes of the messages it received, (probes, classes)."""
        if self.signal != "votes":
            return combine(received, self.rule, self.trim)
        if asymmetry:
            return asymmetric(received, classes, asymmetry)
        return tally(received, classes)

    def merge(self, fed: Federation) -> None:
        """All peers take the plain average of their models; their optimizers go on."""
        sent = model_messages(fed)
        state = fed.merge()
        if self.merge_cost == "star":
            fed.uplink("model", sent)
            fed.downlink("model", model_message(state))
        else:
            fed.exchange("model", sent)
        fed.broadcast(state)
        if self.proximal:
            fed.server_state["tally/anchor"][fed.present] = fed.vectors()
