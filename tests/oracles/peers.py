"""A peer of TallyTrain: a model, and one optimizer for all its steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from oracles.networks import network
from oracles.world import World, cross_entropy

__all__ = ["Peer"]


class Peer:
    """A model and its optimizer, which goes on over rounds unless `reset_every` says otherwise."""

    def __init__(self, world: World, kind: str, units: Sequence[int], start: torch.Tensor) -> None:
        self.world, self.how = world, world.optimizer
        self.model = network(kind, units, start)
        self.weights = list(self.model.parameters())
        self.forget()

    def forget(self) -> None:
        """Start with a new optimizer."""
        self.optimizer = self.world.new_optimizer(self.model)

    def begin(self, what: str) -> None:
        """Begin a round or a phase of one; optimizers live through a run, if not less."""
        if self.how["reset_every"] in (what, "phase"):
            self.forget()

    def step(self, loss: torch.Tensor) -> None:
        """Descend: NaN becomes 0, then the gradient is clipped to a norm (appendix I)."""
        self.optimizer.zero_grad()
        loss.backward()
        slopes = [w.grad for w in self.weights]
        if self.how["zero_nonfinite_grads"]:
            for slope in slopes:
                slope[~slope.isfinite()] = 0.0
        norm = sum((slope**2).sum() for slope in slopes) ** 0.5
        if self.how["clip"] is not None and norm > self.how["clip"]:
            for slope in slopes:
                slope *= self.how["clip"] / norm
        self.optimizer.step()

    def private(self, i: int, r: int, mu: float, start: torch.Tensor) -> float:
        """Take the round's private steps, FedProx's with μ; return the mean loss of a sample."""
        self.begin("round")
        self.model.train()
        mine, losses = self.world.private[i], []
        change = self.world.crops("augment", i, r)
        for positions in self.world.batches("private", i, r, len(mine)):
            x, y = self.world.x[mine[positions]], self.world.y[mine[positions]]
            loss = cross_entropy(self.model(change(x)).flatten(0, -2), y.flatten())
            losses += [loss.item()] * len(positions)
            if mu:
                distance = torch.cat([w.flatten() for w in self.weights]) - start
                loss = loss + mu / 2 * (distance**2).sum()
            self.step(loss)
        return float(np.nanmean(losses))

    def says(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits, in evaluation mode."""
        self.model.eval()
        with torch.no_grad():
            return self.model(x)

    def size(self) -> int:
        """Return the bytes of a model: weights and statistics as float32."""
        return 4 * sum(t.numel() for t in self.model.state_dict().values())
