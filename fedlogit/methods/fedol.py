"""FedOL: pseudo-labels and a server's model that refine each other (FedOL §III-IV, Algorithm 1)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from fedlogit.aggregation import Targets, confidence
from fedlogit.aggregation.pseudo_labels import NO_PSEUDO_LABEL, pseudo_labels
from fedlogit.aggregation.targets import one_hot_targets
from fedlogit.data import UNKNOWN
from fedlogit.federation import Federation
from fedlogit.methods.one_shot import OneShot

__all__ = ["FedOL"]


class FedOL(OneShot):
    """Alternate between pseudo-labels from votes and training on them and on the clients' mixture.

    Absent clients: those present vote, and the mixture is theirs.

    Attributes:
        iterations: Times that pseudo-labels are made and the server trains (§V-A: 10).
        trade_off: τ, the weight of the pseudo-labels' loss (§V-A: 0.2). 0 is FedHKT, but for the
            number of times the server's model is trained.
        first_ratio: ρ of the first iteration, the share of samples each model may vote on (§V-A:
            0.1).
        ratio_step: What ρ gains with each iteration (§V-A: 0.05); it stops at 1.
        negative: Models also vote against the classes that they do not predict (eq. 12).
        votes: ``confidence`` weighs a vote by C², a model's mean probability of the class (eq. 10);
            ``equal`` counts every vote once.
        mixture: ``entropy`` weighs clients by λ_k(x) (eq. 14), ``equal`` by 1/K.
        curriculum: Let ρ grow; off, it has its last value from the start.
    """

    name: ClassVar[str] = "fedol"

    iterations: Annotated[int, Field(gt=0)] = 10
    trade_off: Annotated[float, Field(ge=0)] = 0.2
    first_ratio: Annotated[float, Field(gt=0, le=1)] = 0.1
    ratio_step: Annotated[float, Field(ge=0, lt=1)] = 0.05
    negative: bool = True
    votes: Literal["confidence", "equal"] = "confidence"
    mixture: Literal["entropy", "equal"] = "entropy"
    curriculum: bool = True

    def ratio(self, iteration: int) -> float:
        """Return ρ_t of iteration t, from 1."""
        t = iteration if self.curriculum else self.iterations
        return min(1.0, self.first_ratio + self.ratio_step * (t - 1))

    def distil_server(
        self, fed: Federation, logits: torch.Tensor, targets: Targets | None = None
    ) -> None:
        """Do `iterations` iterations; in the first one only clients vote.

        Args:
            fed: The federation.
            logits: The clients', (clients, points, classes).
            targets: Those of the first iteration, if they were made before.
        """
        server = None
        for t in range(1, self.iterations + 1):
            labels = self.labels(logits, server, t)
            _record(fed, labels, t)
            made = targets if t == 1 else None
            learn = partial(_learn, fed, made or self._objective(logits, labels), t)
            server = fed.once(f"iteration/{t}", learn)["logits"]

    def targets(self, logits: torch.Tensor) -> Targets:
        """Return the targets of the first iteration, which the clients' logits alone decide."""
        return self._objective(logits, self.labels(logits, None, 1))

    def labels(
        self, logits: torch.Tensor, server: torch.Tensor | None, iteration: int
    ) -> torch.Tensor:
        """Return pseudo-labels ŷ, int64 (points,); -1 is the zero vector (steps 1-5).

        Args:
            logits: The clients', (clients, points, classes).
            server: The server's own of the iteration before, (points, classes); None at first.
            iteration: t, from 1.
        """
        sources = logits if server is None else torch.cat([logits, server[None]])
        strength = confidence.class_confidence(sources)
        if self.votes == "equal":
            strength = torch.ones_like(strength)
        return pseudo_labels(sources, strength, self.ratio(iteration), negative=self.negative)

    def _objective(self, logits: torch.Tensor, labels: torch.Tensor) -> Targets:
        """Return the target of eq. 7: Σ_k λ_k KL(p_k ‖ q) + τ CE(ŷ, q).

        Both are cross-entropies with q, so a sample with a pseudo-label has weight 1 + τ and the
        target (Σ_k λ_k p_k + τ ŷ) / (1 + τ), and one without has weight 1.
        """
        classes = logits.shape[-1]
        weights = confidence.entropy_weights(logits)
        if self.mixture == "equal":
            weights = torch.full_like(weights, 1 / len(logits))
        votes = one_hot_targets(labels, classes)
        strength = self.trade_off * votes.weights.double()
        mixed = confidence.mixture(logits, weights) + strength[:, None] * votes.distributions
        return Targets((mixed / (1 + strength)[:, None]).float(), (1 + strength).float())


def _learn(fed: Federation, targets: Targets, iteration: int) -> dict[str, torch.Tensor]:
    """Train the server's model; return its logits on the public set, (points, classes)."""
    fed.distil_server(targets, part=iteration)
    logits = fed.server_logits(fed.public)
    if fed.public_known:
        accuracy = float(fed.accuracy(logits, fed.public))
        fed.log(**{f"server_public_accuracy_{iteration}": accuracy})
    return {"logits": logits}


def _record(fed: Federation, labels: torch.Tensor, iteration: int) -> None:
    """Log how many samples have a pseudo-label, and how many of these are right."""
    known = labels != NO_PSEUDO_LABEL
    fed.log(**{f"pseudo_share_{iteration}": float(known.double().mean())})
    if fed.public_known:
        true = fed.labels(fed.public)
        right = (labels == true)[known & (true != UNKNOWN)]
        fed.log(**{f"pseudo_accuracy_{iteration}": float(right.double().mean())})
