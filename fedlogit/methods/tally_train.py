"""TallyTrain: peers vote on public probes (TallyTrain §3.4, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch

from fedlogit.aggregation.attacks import false_soft_labels, false_votes
from fedlogit.aggregation.robust import robust_average
from fedlogit.aggregation.votes import (
    asymmetric,
    emphasis,
    margin,
    pack,
    soft_labels,
    tally,
    unpack,
)
from fedlogit.federation import Federation
from fedlogit.federation.topology import adjacency
from fedlogit.methods.model_federation import model_message, models_sent
from fedlogit.methods.tally_settings import TallySettings
from fedlogit.methods.voting_theory import measure

__all__ = ["TallyTrain"]


class TallyTrain(TallySettings):
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

    The parameters are in `TallySettings`.
    """

    needs_public: ClassVar[bool] = True
    supports_sequences: ClassVar[bool] = True
    supports_external_public: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True
    fixed_messages: ClassVar[bool] = True
    exports: ClassVar[frozenset[str]] = frozenset({"theory"})

    def init(self, fed: Federation) -> None:
        """FedProx's first anchor is each peer's own start."""
        if self.proximal:
            fed.server_state["tally/anchor"] = fed.vectors()

    def round(self, fed: Federation, r: int) -> None:
        """Do round r of Algorithm 1."""
        anchors = fed.server_state.get("tally/anchor")
        centers = None if anchors is None else fed.gather_rows(anchors)
        fed.train_private(proximal_mu=self.proximal, prox_centers=centers)
        if r > self.warm_up and (self.signal != "none" or self.label_weight):
            fed.send_alike("probes", lambda: self.consensus_step(fed, r))
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

    def consensus_step(self, fed: Federation, r: int) -> None:
        """Do one step on α CE(f, y) + λ_r (1 - α) KL(H̄ ‖ f): Algorithm 1's consensus channel.

        Votes are sent also where λ_r is 0, as the paper's Table 7 counts them; the step is left out
        where both weights are.
        """
        probes = fed.probes(self.probes_per_round, self.anchors_per_round)
        soft, targets = 0.0, None
        if self.signal != "none":
            received = self.exchange_messages(fed, fed.claimed(fed.logits(probes), "probes"))
            consensus = self.consensus(fed, received)
            right = float(fed.accuracy(consensus, probes).mean())
            if not math.isnan(right):  # NaN where nobody knows the labels
                fed.log(consensus_accuracy=right)
            faded = self.margin_memory is None
            weight = self.consensus_weight(r) if faded else self.follow_margin(fed, consensus)
            fed.log(consensus_weight=weight)
            soft = weight * (1 - self.label_weight)
            uniform = self.consensus(fed, received, uniform=True) if self.asymmetry else consensus
            targets = consensus * (soft * emphasis(uniform, self.emphasis))[..., None]
        if self.label_weight or soft:
            fed.distil(probes, targets, label_weight=self.label_weight, once=True)

    def exchange_messages(self, fed: Federation, logits: torch.Tensor) -> list[torch.Tensor]:
        """Exchange messages about probes, and return what each peer receives.

        Args:
            fed: The peers.
            logits: (peers, probes, classes), or (peers, probes, T, classes) of sequences, each of
                whose T positions is then voted on.

        Returns:
            For each peer the messages of its neighbours and its own, (messages, probes, …); a
            single entry where all are connected and so receive the same.
        """
        messages = self.messages(fed, logits)
        votes = messages if self.signal == "votes" else messages.argmax(-1)
        agreement = (votes == votes.mode(0).values).double().mean()
        fed.log(agreement=float(agreement))
        neighbours = self.neighbours(fed)
        links = int(neighbours.sum()) - len(neighbours)  # without those from a peer to itself
        received = self.send(fed, messages, links)
        if neighbours.all():
            return [received]
        return [received[row] for row in torch.from_numpy(neighbours).to(received.device)]

    def consensus(
        self, fed: Federation, received: Sequence[torch.Tensor], *, uniform: bool = False
    ) -> torch.Tensor:
        """Return what peers learn from the messages: H̄, or H̃ where votes are weighted.

        Args:
            fed: The peers.
            received: As from `exchange_messages`.
            uniform: H̄ in any case, in which all votes count alike.

        Returns:
            Distributions (probes, classes), or (probes, T, classes); where not all peers are
            connected, one for each peer, (peers, probes, …).
        """
        asymmetry = 0.0 if uniform else self.asymmetry
        made = [self.combine(messages, fed.classes, asymmetry) for messages in received]
        return torch.stack(made) if len(made) > 1 else made[0]

    def neighbours(self, fed: Federation) -> np.ndarray:
        """Return which present peers are connected, as they are in the graph of all peers."""
        graph = adjacency(self.topology, len(fed.all_clients), self.degree, fed.spec.seed)
        places = fed.present_indices.numpy()
        return graph[np.ix_(places, places)]

    def adversaries_present(self, fed: Federation) -> int:
        """Return how many of the present peers, which are the last ones, send false messages."""
        return int((fed.present_indices >= len(fed.all_clients) - self.adversaries).sum())

    def messages(self, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
        """Return what each peer sends: a vote, (peers, probes), or a soft label like `logits`.

        Votes stay class numbers: as rows of zeros with a one they would be as large as logits.
        """
        votes = self.signal == "votes"
        honest = logits.argmax(-1) if votes else soft_labels(logits, self.signal, self.k)
        false = self.adversaries_present(fed)
        if not false:
            return honest
        drawn = self.random_classes(fed, honest.shape[1:] if votes else honest.shape[1:-1])
        if votes:
            return false_votes(honest, fed.classes, false, self.attack, drawn)
        return false_soft_labels(honest, false, self.attack, drawn, self.magnitude)

    def random_classes(self, fed: Federation, probes: torch.Size) -> torch.Tensor:
        """Draw a class for each present adversary and probe, the same whoever else is absent.

        Args:
            fed: The peers.
            probes: The shape of a peer's votes.

        Returns:
            int64 (present adversaries, *probes).
        """
        generator = fed.torch_rng("lies", fed.round)
        drawn = torch.randint(fed.classes, (self.adversaries, *probes), generator=generator)
        places = fed.present_indices - (len(fed.all_clients) - self.adversaries)
        return drawn[places[places >= 0]]

    def send(self, fed: Federation, messages: torch.Tensor, links: int) -> torch.Tensor:
        """Send each peer's message to its neighbours; return the messages as received.

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
        """Send votes, (peers, …), in as few bytes as `packed` allows; return them as received."""
        rows = votes.flatten(1)
        packed = pack(rows, fed.classes, packed=self.packed)
        received = fed.exchange("votes", packed, links=links)
        return unpack(received, rows.shape[1], fed.classes, packed=self.packed).view_as(votes)

    def combine(self, received: torch.Tensor, classes: int, asymmetry: float) -> torch.Tensor:
        """Return the consensus of the messages that a peer received, (probes, classes)."""
        if self.signal != "votes":
            return robust_average(received, self.rule, self.trim)
        if asymmetry:
            return asymmetric(received, classes, asymmetry)
        return tally(received, classes)

    def merge(self, fed: Federation) -> None:
        """All peers take the plain average of their models; their optimizers go on."""
        sent = models_sent(fed)
        state = fed.merge()
        if self.merge_cost == "star":
            fed.uplink("model", sent)
            fed.downlink("model", model_message(state))
        else:
            fed.exchange("model", sent)
        fed.broadcast(state)
        if self.proximal:
            fed.server_state["tally/anchor"][fed.present_indices] = fed.vectors()
