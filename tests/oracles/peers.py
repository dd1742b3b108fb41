"""A peer of TallyTrain: a model, one optimizer for all its steps, and how it is tested."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from oracles.crops import cropped
from oracles.networks import network
from oracles.world import World, cross_entropy, vector

__all__ = ["Peer", "average", "tested", "weights"]


class Peer:
    """A model and its optimizer, which goes on over rounds unless `lifetime` says otherwise."""

    def __init__(
        self,
        world: World,
        kind: str,
        units: Sequence[int],
        start: torch.Tensor,
        crops: bool = False,
    ) -> None:
        self.model, self.how, self.crops = network(kind, units, start), world.optimizer, crops
        self.weights = list(self.model.parameters())
        self.forget()

    def forget(self) -> None:
        """Start with a new optimizer."""
        how = self.how
        decay = {"lr": how["lr"], "weight_decay": how["weight_decay"]}
        adam = decay | {"betas": (how["beta1"], how["beta2"]), "eps": how["eps"]}
        if how["name"] == "sgd":
            self.optimizer: torch.optim.Optimizer = torch.optim.SGD(self.weights, **decay)
        else:
            kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[how["name"]]
            self.optimizer = kind(self.weights, **adam)

    def begin(self, what: str) -> None:
        """Begin a round or a stage of one; optimizers live through a run, if not less."""
        if self.how["lifetime"] in (what, "stage"):
            self.forget()

    def step(self, loss: torch.Tensor) -> None:
        """Descend: NaN becomes 0, then the gradient is clipped to a norm (appendix I)."""
        self.optimizer.zero_grad()
        loss.backward()
        slopes = [w.grad for w in self.weights]
        if self.how["scrub"]:
            for slope in slopes:
                slope[~slope.isfinite()] = 0.0
        norm = sum((slope**2).sum() for slope in slopes) ** 0.5
        if self.how["clip"] is not None and norm > self.how["clip"]:
            for slope in slopes:
                slope *= self.how["clip"] / norm
        self.optimizer.step()

    def private(self, world: World, i: int, r: int, mu: float, start: torch.Tensor) -> float:
        """Take the round's private steps, FedProx's with μ; return the mean loss of a sample."""
        self.begin("round")
        mine, losses, noise = world.private[i], [], world.noise("augment", i, r)
        self.model.train()
        for positions in world.batches("private", i, r, len(mine)):
            x, y = world.x[mine[positions]], world.y[mine[positions]]
            x = cropped(x, noise, world.x.min().item()) if self.crops else x
            loss = cross_entropy(self.model(x).flatten(0, -2), y.flatten())
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


def average(takers: Sequence[Peer], givers: Sequence[Peer]) -> list[torch.Tensor]:
    """Give each taker the plain average of the givers' weights and statistics; return what it has.

    Optimizers go on as they are.
    """
    states = [giver.model.state_dict() for giver in givers]
    mean = {key: sum(s[key] for s in states) / len(states) for key in states[0]}
    for taker in takers:
        taker.model.load_state_dict(mean)
    return weights(takers)


def tested(world: World, peers: Sequence[Peer]) -> dict[str, object]:
    """Return test accuracy and loss, mean over peers, and how the accuracies spread."""
    right, losses, y = [], [], world.y_test.flatten()
    for peer in peers:
        z = peer.says(world.x_test).flatten(0, -2)
        right.append((z.argmax(1) == y).double().mean().item())
        losses.append(cross_entropy(z, y).item())
    perplexity = np.mean(np.exp(losses))
    return {
        "accuracy": np.mean(right),
        "accuracy_std": np.sqrt(np.mean((np.array(right) - np.mean(right)) ** 2)),
        "loss_test": np.mean(losses),
    } | ({"perplexity": perplexity} if perplexity < 100 else {})  # beyond, float32 is too coarse


def weights(peers: Sequence[Peer]) -> list[torch.Tensor]:
    """Return each peer's weights."""
    return [vector(peer.model) for peer in peers]
