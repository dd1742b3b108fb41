"""ShapFed: class-wise agreement of the last layer's gradients (Tastan et al. 2024; CELM §5)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from fedlogit.aggregation.contribution import (
    class_similarity,
    moving_average,
    redistributed,
    shares_of_present,
    to_shares,
)
from fedlogit.federation import Federation, State
from fedlogit.methods.model_federation import ModelFederation

__all__ = ["ShapFed"]


class ShapFed(ModelFederation):
    """Contributions are mean class-wise cosines with the weighted average, smoothed over rounds.

    Absent clients: their γ_i waits, and their ω_i; those present divide anew what they had of ω
    together. The first round of a client is taken as it is.

    Attributes:
        smoothing: μ of γ ← μ γ_old + (1-μ) γ_new; the first round is taken as it is. 0.9 in the
            official script, 0.5 in the CELM author's port. 0 forgets.
        cosine: ``half`` maps a cosine to (1 + cos) / 2, as the CELM author's later code does: the
            weights stay positive and near uniform. ``raw`` is the official code's; where its
            smoothed mean is negative, a client's share is 0, because a share cannot be negative. If
            nobody's is positive, all count alike in that round, as in the first; the round's column
            ``no_positive_share`` is then 1. The official code has no rule for it: it divides by the
            sum, which is 0, or negative and turns the order of clients round.
        rewards: Send client i the mixture (1-ω_i) w_i + ω_i w_g, as the official code does. CELM
            compares one global model, so it is off.
    """

    name: ClassVar[str] = "shapfed"
    min_clients: ClassVar[int] = 2
    supports_sequences: ClassVar[bool] = True

    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.9
    cosine: Literal["half", "raw"] = "half"
    rewards: bool = False

    def init(self, fed: Federation) -> None:
        """Start from equal weights ω_i = 1/N; nobody has a γ_i yet."""
        super().init(fed)
        n = len(fed.clients)
        fed.server_state["shapfed/weights"] = torch.full((n,), 1 / n, dtype=torch.float64)
        fed.server_state["shapfed/gamma"] = torch.full((n,), torch.nan, dtype=torch.float64)

    def broadcast(self, fed: Federation, model: State) -> None:
        """Send w_g, or each client its own mixture."""
        own = fed.vectors() if self.rewards else None
        super().broadcast(fed, model)
        if own is not None:
            weights = self._weights(fed).to(own)[:, None]
            fed.load_vectors((1 - weights) * own + weights * model.vector)
        # What each client starts from, whose difference is its gradient.
        fed.server_state["shapfed/before"] = fed.vectors()

    def contributions(self, fed: Federation) -> list[float]:
        """Return ω = γ / Σγ."""
        before, after = fed.server_state.pop("shapfed/before"), fed.vectors()
        # The cosine does not see the learning rate that turns a difference into a gradient.
        heads = torch.stack(
            [c.head_rows(b - a) for c, b, a in zip(fed.clients, before, after, strict=True)]
        ).double()
        weights = self._weights(fed).to(heads)
        similarity = class_similarity(heads, weights)
        if self.cosine == "half":
            similarity = (1 + similarity) / 2
        state, present = fed.server_state, fed.present_indices.to(heads.device)
        before_all = state["shapfed/gamma"].to(heads)
        gamma = moving_average(before_all[present], similarity.mean(1), self.smoothing)
        state["shapfed/gamma"] = before_all.index_copy(0, present, gamma)
        shares = gamma.clamp(min=0)
        if self.cosine == "raw":
            fed.log(no_positive_share=float(not shares.any()))
        own = to_shares(shares)
        state["shapfed/weights"] = redistributed(state["shapfed/weights"].to(own), present, own)
        return own.tolist()

    def _weights(self, fed: Federation) -> torch.Tensor:
        """Return ω of those present, float64 (clients,), which sum to 1."""
        return shares_of_present(fed.server_state["shapfed/weights"], fed.present_indices)
