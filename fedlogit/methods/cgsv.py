"""CGSV: cosine gradient Shapley values and sparsified rewards (Xu et al. 2021; CELM §5)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field

from fedlogit.aggregation.contribution import (
    keep_largest,
    moving_average,
    redistributed,
    shares_of_present,
    to_shares,
)
from fedlogit.federation import Federation
from fedlogit.methods.base import Method
from fedlogit.methods.model_federation import check_shares, send_buffers

__all__ = ["CGSV"]

_LEAST = 1e-3  # no reputation falls below this before it is normalised, as in the authors' code
_TINY = 1e-7  # added to norms, as the authors' code does


class CGSV(Method):
    """Clients keep models of their own, and are paid in entries of the aggregate gradient.

    What CELM's tables test is the server's model, w_g + Σ over rounds of Σ_i ω_i Δ_i. Since every
    Δ_i has norm Γ, w_g moves at most Γ a round, whatever the learning rate.

    Absent clients: their r_i and ω_i wait, and they are paid nothing; those present divide anew
    what they had of ω together. A client's r_i starts from 0 in its first round. Its model is what
    it was: nobody is sent w_g, so who joins late starts from w_g^(0).

    Attributes:
        norm: Γ, to which each client's update is scaled. 0.15 in the authors' code for CIFAR-10,
            and in the CELM author's port for all; the authors' MNIST setting is 0.5.
        normalise: ``always`` scales every update to Γ; ``above`` only those that are longer.
        smoothing: α of the moving average of reputations, 0.95 in the authors' code. 0 forgets.
        altruism: β of the reward q_i = tanh(β r_i) / max_j tanh(β r_j), which the authors' code
            varies from 0.5 to 1e7; the CELM author's port has a field β = 1, but rewards by
            r_i / max_j r_j, which β → 0 gives. Large values reward all alike. It does not change
            what CELM's tables test, the server's model, except through what clients train from.
        restore: Whether a client's model goes back to what it was before it trained, and is then
            paid, as in the authors' code; without, it keeps what it trained, as in the CELM
            author's port, whose line that restores is commented out.
    """

    min_clients: ClassVar[int] = 2
    global_model: ClassVar[bool] = True
    supports_sequences: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True
    added: ClassVar[frozenset[str]] = frozenset({"restore"})

    norm: Annotated[float, Field(gt=0)] = 0.15
    normalise: Literal["always", "above"] = "always"
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.95
    altruism: Annotated[float, Field(gt=0)] = 1.0
    restore: bool = True

    def init(self, fed: Federation) -> None:
        """Give every client w_g^(0); nobody has a reputation yet."""
        assert fed.server is not None
        fed.broadcast(fed.server.state())
        n = len(fed.clients)
        fed.server_state["cgsv/rated"] = torch.zeros(n, dtype=torch.bool)
        fed.server_state["cgsv/weights"] = torch.full((n,), 1 / n, dtype=torch.float64)

    def round(self, fed: Federation, r: int) -> None:
        """Do a round: gradients, their average, reputations, rewards."""
        assert fed.server is not None
        own = fed.vectors()
        fed.train_private()
        trained = fed.vectors()
        updates = fed.uplink("update", self._normalised(trained - own))
        send_buffers(fed)

        state, present = fed.server_state, fed.present_indices.to(updates.device)
        of_all = state["cgsv/weights"].to(updates.device)
        weights = shares_of_present(of_all, present)
        average = weights.to(updates) @ updates  # u = Σ ω_i Δ_i
        model = fed.server.state()
        merged = replace(fed.merge(weights.tolist()), vector=model.vector + average)
        fed.server.load(merged)

        similarity = F.cosine_similarity(updates.double(), average.double()[None], dim=1)
        rated = state["cgsv/rated"].to(updates.device)
        old = weights.masked_fill(~rated[present], 0)
        reputation = moving_average(old, similarity, self.smoothing)
        reputation = to_shares(reputation.clamp(min=_LEAST))
        state["cgsv/weights"] = redistributed(of_all, present, reputation)
        state["cgsv/rated"] = rated.index_fill(0, present, True)
        fed.contribute(check_shares(reputation.tolist(), self.name))
        kept = own if self.restore else trained
        fed.load_vectors(kept + self._rewards(fed, average, reputation))
        if merged.buffers.numel():
            fed.downlink("reward", merged.buffers)
            for client in fed.clients:
                client.load(replace(merged, vector=client.vector.detach()))

    def _normalised(self, updates: torch.Tensor) -> torch.Tensor:
        norms = updates.norm(dim=1, keepdim=True)
        scale = self.norm / (norms + _TINY)
        return updates * (scale if self.normalise == "always" else scale.clamp(max=1))

    def _rewards(
        self, fed: Federation, average: torch.Tensor, reputation: torch.Tensor
    ) -> torch.Tensor:
        """Return each client's entries of the aggregate, largest first, layer by layer."""
        paid = torch.tanh(self.altruism * reputation)
        quota = (paid / paid.max()).tolist()
        rewards = torch.zeros(len(quota), len(average), device=average.device)
        for i, q in enumerate(quota):
            sent = 0
            for place in fed.clients[i].layers().values():
                count = math.ceil(q * (place.stop - place.start))
                rewards[i, place] = keep_largest(average[place], count)
                sent += max(count, int(rewards[i, place].count_nonzero()))  # with ties
            # A value and its index: 32 + 32 bits.
            fed.downlink("reward", average.new_empty(sent), bits=64, receivers=1)
        return rewards
