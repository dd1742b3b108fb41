"""CFFL: reputations from validation accuracy (Lyu et al. 2020), with one global model (CELM §5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator

from fedlogit.aggregation.contribution import (
    keep_largest,
    moving_average,
    redistributed,
    shares_of_present,
    to_shares,
)
from fedlogit.federation import Federation
from fedlogit.frozen_config import refuse_unused
from fedlogit.methods.base import Method
from fedlogit.methods.model_federation import (
    check_shares,
    model_message,
    models_sent,
    send_buffers,
)

__all__ = ["CFFL"]


class CFFL(Method):
    """Clients are weighed by a sinh of their share of validation accuracy, smoothed over rounds.

    The original trains a model per participant and exchanges sparse updates; CELM compares one
    global model and does not say how it adapted CFFL. Here, by default, clients start each round
    from w_g, send all of it back, and are scored on the union of the clients' held-out samples.
    The flags bring back what the original's code does; see `docs/deviations.md`.

    Absent clients: those present are scored on what they hold out, and divide anew what they had of
    r together; r_i of the absent waits. A client's first score is taken as it is. If `removal` has
    left nobody of those present, w_g stays.

    Attributes:
        validation: Share of each private set held out; CELM's author's code has 10 %.
        alpha: α of sinh(α x): larger sets clients further apart; towards 0, r̂ is the share of
            accuracy itself. The original's code starts from 5, and lets it double over training,
            which is left out here.
        smoothing: How much of the old reputation stays: r ← 0.8 r + 0.2 r̂, the original's code's
            weights. 0 forgets.
        server_weights: ``reputation`` averages by r, ``reputation_samples`` by r_i n_i;
            ``uniform`` over the reputable; ``sum`` adds all their updates, as the original's code
            does for images; for tabular data it has shares of samples. Uniform without `removal` is
            FedAvg on the samples not held out.
        feedback: Feed r back through the sinh, as the original's code does. That map is unstable:
            with scores of whole models it ends with a single client.
        removal: Drop clients below 1 / (3 |R|), for good, as the original's code does (it has
            1 / (6 |R|) for partitions by class). The most reputable client always stays.
        sparse: Clip updates to ±`clip` and send the largest `upload` of them.
        clip: Bound of an update's entries, if `sparse`: in the original's code 1e-2 on MNIST, 1e-3
            on CIFAR-10.
        scored_on: ``union`` scores every client on what all hold out together, ``own`` on its own:
            CELM §2 has CFFL evaluate "client models on server-side validation data", and §5 says
            that it "uses client-side validation information".
        upload: Share of a model's entries sent, θ, if `sparse`: 0.1 in the original's code, which
            on CIFAR-10 takes it of each layer by itself. 1 sends all. All
            that are as large as the last of them are sent too, so with many entries at the clip
            it is more.
    """

    min_clients: ClassVar[int] = 2
    global_model: ClassVar[bool] = True
    supports_sequences: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True
    added: ClassVar[frozenset[str]] = frozenset({"scored_on"})

    validation: Annotated[float, Field(gt=0, lt=1)] = 0.1
    alpha: Annotated[float, Field(gt=0, le=700)] = 5.0  # beyond, sinh is infinite
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.8
    server_weights: Literal["reputation", "reputation_samples", "uniform", "sum"] = "reputation"
    feedback: bool = False
    removal: bool = False
    sparse: bool = False
    clip: Annotated[float, Field(gt=0)] = 1e-2
    upload: Annotated[float, Field(gt=0, le=1)] = 0.1
    scored_on: Literal["union", "own"] = "union"

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if not self.sparse:  # a setting that changes no number would change a run's hash
            refuse_unused(self, ("clip", "upload"), "has no effect without sparse=True")
        return self

    @property
    def holdout(self) -> float:
        """Share of private samples for scoring."""
        return self.validation

    def init(self, fed: Federation) -> None:
        """Give every client w_g^(0); everybody is reputable, and nobody has been scored."""
        assert fed.server is not None
        fed.broadcast(fed.server.state())
        n = len(fed.clients)
        fed.server_state["cffl/reputable"] = torch.ones(n, dtype=torch.bool)
        fed.server_state["cffl/scored"] = torch.zeros(n, dtype=torch.bool)
        fed.server_state["cffl/reputation"] = torch.full((n,), 1 / n, dtype=torch.float64)

    def round(self, fed: Federation, r: int) -> None:
        """Do a round: train, send, score, update reputations, average."""
        assert fed.server is not None
        model = fed.server.state()
        fed.downlink("model", model_message(model))
        fed.broadcast(model)
        fed.train_private()
        if self.sparse:
            self._sparsify(fed, model.vector)
        else:
            fed.uplink("model", models_sent(fed))
        if not self._reputable(fed).any():
            fed.contribute([0.0] * len(fed.clients))
            return
        reputation = self._reputation(fed)
        fed.contribute(check_shares(reputation.tolist(), self.name))
        reputable = self._reputable(fed).double()
        if self.server_weights == "sum":
            updates = fed.vectors() - model.vector
            total = reputable.to(updates) @ updates
            merged = fed.merge(to_shares(reputable).tolist())
            fed.server.load(replace(merged, vector=model.vector + total))
        else:
            weights = self._weights(fed, reputation, reputable)
            fed.server.load(fed.merge(weights.tolist()))

    def _weights(
        self, fed: Federation, reputation: torch.Tensor, reputable: torch.Tensor
    ) -> torch.Tensor:
        """Return what the server averages by, float64 (clients,), which sums to 1."""
        if self.server_weights == "uniform":
            return to_shares(reputable)
        if self.server_weights == "reputation":
            return reputation
        samples = torch.tensor([c.samples for c in fed.clients], dtype=torch.float64)
        return to_shares(reputation * samples)

    def _sparsify(self, fed: Federation, start: torch.Tensor) -> None:
        """Reduce every client's update to its largest entries, clipped."""
        updates = (fed.vectors() - start).clamp(-self.clip, self.clip)
        count = max(1, int(self.upload * updates.shape[1]))
        kept = torch.stack([keep_largest(u, count) for u in updates])
        fed.load_vectors(start + kept)
        # A value and its index, 32 + 32 bits; ties at the clip make messages longer than `count`.
        sent = int(kept.count_nonzero(dim=1).clamp(min=count).sum())
        fed.uplink("update", kept.new_empty(1, sent), bits=64)
        send_buffers(fed)

    def _reputable(self, fed: Federation) -> torch.Tensor:
        """Return which of those present have not been removed, bool (clients,)."""
        return fed.server_state["cffl/reputable"].cpu()[fed.present_indices]

    def _reputation(self, fed: Federation) -> torch.Tensor:
        """Return reputations r, float64 (clients,), which sum to 1; 0 for those removed."""
        state, present = fed.server_state, fed.present_indices
        accuracy = self._accuracy(fed)
        reputable = self._reputable(fed)
        score = to_shares(accuracy * reputable)
        of_all, scored = state["cffl/reputation"].cpu(), state["cffl/scored"].cpu()
        old = shares_of_present(of_all, present).masked_fill(~scored[present], torch.nan)
        if self.feedback:
            before = old.nan_to_num(nan=0.0)
            reputation = self._sinh(moving_average(before, score, self.smoothing)) * reputable
        else:
            reputation = moving_average(old, self._sinh(score) * reputable, self.smoothing)
        reputation = to_shares(reputation)
        if self.removal:
            least = 1 / (3 * int(reputable.sum()))
            reputable = reputable & (reputation >= least)
            reputation = to_shares(reputation * reputable)
        state["cffl/reputation"] = redistributed(of_all, present, reputation)
        state["cffl/reputable"] = state["cffl/reputable"].cpu().index_copy(0, present, reputable)
        state["cffl/scored"] = scored.index_fill(0, present, True)
        return reputation

    def _accuracy(self, fed: Federation) -> torch.Tensor:
        """Return each client's validation accuracy, float64 (clients,)."""
        held_out = [client.validation for client in fed.clients]
        if self.scored_on == "union":
            union = torch.cat(held_out)
            return fed.accuracy(fed.logits(union), union).cpu()
        own = zip(fed.own_logits(held_out), held_out, strict=True)
        return torch.stack([fed.accuracy(logits, samples) for logits, samples in own]).cpu()

    def _sinh(self, x: torch.Tensor) -> torch.Tensor:
        return to_shares(torch.sinh(self.alpha * x))
