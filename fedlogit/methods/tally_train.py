"""TallyTrain: peers vote on public probes (TallyTrain §3.4, Algorithm 1)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from fedlogit.aggregation.votes import (
    asymmetric,
    bits_per_vote,
    emphasis,
    soft_average,
    tally,
    top_k,
)
from fedlogit.errors import FedlogitError
from fedlogit.federation import Federation
from fedlogit.methods.base import Method
from fedlogit.methods.model_federation import message, messages
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
    """

    needs_public: ClassVar[bool] = True
    sequences: ClassVar[bool] = True

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

    def check(self, spec: RunSpec) -> None:
        """Refuse settings that do not fit the run."""
        if spec.text and self.signal in ("votes", "top_k"):
            bits_per_vote(spec.text.vocabulary, packed=self.packed)
        public = spec.public.size if spec.public else 0
        if self.probes_per_round > public:
            raise FedlogitError(
                f"method tally_train: probes_per_round = {self.probes_per_round}: the public set"
                f" has {public}"
            )
        if self.warm_up >= spec.rounds:
            raise FedlogitError(
                f"method tally_train: warm_up = {self.warm_up}: give less than the {spec.rounds}"
                " rounds"
            )
        if self.asymmetry and self.signal != "votes":
            raise FedlogitError(
                f"method tally_train: asymmetry = {self.asymmetry}: only votes can be weighed so"
            )

    def init(self, fed: Federation) -> None:
        """FedProx's first anchor is each peer's own start."""
        if self.proximal:
            fed.memory["tally/anchor"] = torch.stack([c.vector.detach() for c in fed.clients])

    def round(self, fed: Federation, r: int) -> None:
        """Do round r of Algorithm 1."""
        fed.train_private(pull=self.proximal, anchors=fed.memory.get("tally/anchor"))
        if r > self.warm_up:
            if self.signal != "none" or self.label_weight:
                self.learn_from_probes(fed, r)
            if self.merge_every and r % self.merge_every == 0:
                self.merge(fed)

    def consensus_weight(self, r: int) -> float:
        """Return λ_r."""
        if self.decay_rounds is None:
            return 1.0
        return max(0.0, 1 - (r - self.warm_up) / self.decay_rounds)

    def learn_from_probes(self, fed: Federation, r: int) -> None:
        """Do one step on α CE(f, y) + λ_r (1 - α) KL(H̄ ‖ f).

        Votes are sent also where λ_r is 0, as the paper's Table 7 counts them; the step is left out
        where both weights are.
        """
        probes = fed.probes(self.probes_per_round)
        soft = self.consensus_weight(r) * (1 - self.label_weight)
        targets = None
        if self.signal != "none":
            consensus = self.consensus(fed, fed.logits(probes))
            fed.log(consensus_accuracy=fed.accuracy(consensus, probes).item())
            targets = consensus * (soft * emphasis(consensus, self.emphasis))[..., None]
        if self.label_weight or (soft and targets is not None):
            fed.distil(probes, targets, label_weight=self.label_weight, once=True)

    def consensus(self, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
        """Return what the peers say together, and book what they send.

        Args:
            fed: The peers.
            logits: (peers, probes, classes), or (peers, probes, T, classes) of sequences, each of
                whose T positions is then voted on.

        Returns:
            Distributions (probes, classes), or (probes, T, classes).
        """
        votes = logits.argmax(-1)
        agreement = (votes == votes.mode(0).values).double().mean()
        fed.log(agreement=float(agreement))
        if self.signal == "probabilities":
            fed.ledger.exchange("probabilities", logits.softmax(-1))
            return soft_average(logits)
        bits = bits_per_vote(fed.classes, packed=self.packed)
        if self.signal == "top_k":
            fed.ledger.exchange("votes", logits.topk(self.k, dim=-1).indices, bits=bits)
            if self.k > 1:  # the single best needs no probability
                fed.ledger.exchange("probabilities", logits.topk(self.k, dim=-1).values)
            return top_k(logits, self.k)
        fed.ledger.exchange("votes", votes, bits=bits)
        if self.asymmetry:
            return asymmetric(votes, fed.classes, self.asymmetry)
        return tally(votes, fed.classes)

    def merge(self, fed: Federation) -> None:
        """All peers take the plain average of their models; their optimizers go on."""
        sent = messages(fed)
        state = fed.merge()
        if self.merge_cost == "star":
            fed.ledger.up("model", sent)
            fed.ledger.down("model", message(state), clients=len(fed.clients))
        else:
            fed.ledger.exchange("model", sent)
        fed.broadcast(state)
        if self.proximal:
            fed.memory["tally/anchor"] = fed.vectors()
