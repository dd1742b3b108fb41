"""What a second version of a method is given: data and first weights as plain tensors, no library.

Random choices are part of a run's specification, not of a method, so both versions get the same
minibatches, probes and first weights. Everything else a second version does itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

__all__ = [
    "World",
    "accuracy",
    "cross_entropy",
    "fit",
    "load",
    "perceptron",
    "tested",
    "trained",
    "vector",
]

Index = torch.Tensor


@dataclass(frozen=True)
class World:
    """The problem that both versions solve.

    Attributes:
        x: Normalised training images, flattened, float32 (n, features).
        y: Their classes, int64 (n,).
        shape: Channels, height and width of an image.
        black: A black pixel, normalised; NaN of a text.
        augmented: Which images a run crops: ``augment``, private ones of the clients;
            ``augment/teach``, public ones of the server.
        x_test: The same of the test split.
        y_test: The same of the test split.
        classes: Number of classes C.
        private: Training samples of each client, without those it holds out.
        validation: Samples that each client holds out.
        public: Public samples.
        counts: Samples of each class at each client, int64 (clients, classes).
        units: Units of each client's perceptron, layer by layer.
        first: First weights of each client, a flat float32 vector a client.
        build_client: (role, client, number) -> first weights of another model of a client's units.
        server_units: The same of the server's model; empty without one.
        first_server: First weights of the server's model; empty without one.
        batch: Minibatch size.
        rate: Learning rate.
        optimizer: The other settings of the clients' optimizer, by name (``momentum``, …).
        server_optimizer: All settings of the optimizer of the server's model.
        rounds: Rounds of the run.
        epochs: Passes over the data in each phase of a round.
        server_epochs: Passes over the public set each time the server's model learns.
        batches: (phase, client, round, number of samples) -> positions of each minibatch.
        server_batches: (round, part, number of samples) -> the same for the server's model.
        probes: (round, how many) -> public samples of a round.
        numbers: (purpose, *ids) -> NumPy generator, for what else is drawn.
        noise: (purpose, *ids) -> PyTorch generator, for what else is drawn.
        seed: The run's.
        address: (seed, purpose, *ids) -> seed, for what has a seed of its own.
        graph: (neighbours) -> who hears whom in the run's regular graph, bool (clients, clients).
    """

    x: torch.Tensor
    y: torch.Tensor
    shape: Sequence[int]
    black: float
    augmented: Sequence[str]
    x_test: torch.Tensor
    y_test: torch.Tensor
    classes: int
    private: Sequence[Index]
    validation: Sequence[Index]
    public: Index
    counts: np.ndarray
    units: Sequence[Sequence[int]]
    first: Sequence[torch.Tensor]
    build_client: Callable[[str, int, int], torch.Tensor] = field(repr=False)
    server_units: Sequence[int]
    first_server: torch.Tensor
    batch: int
    rate: float
    optimizer: Mapping[str, Any]
    server_optimizer: Mapping[str, Any]
    rounds: int
    epochs: int
    server_epochs: int
    batches: Callable[[str, int, int, int], list[Index]] = field(repr=False)
    server_batches: Callable[[int, int, int], list[Index]] = field(repr=False)
    probes: Callable[[int, int], Index] = field(repr=False)
    numbers: Callable[..., np.random.Generator] = field(repr=False)
    noise: Callable[..., torch.Generator] = field(repr=False)
    seed: int
    address: Callable[..., int] = field(repr=False)
    graph: Callable[[int], np.ndarray] = field(repr=False)

    @property
    def clients(self) -> range:
        """The clients' numbers."""
        return range(len(self.private))

    def models(self) -> list[nn.Sequential]:
        """Return each client's perceptron with its first weights."""
        return [perceptron(u, w) for u, w in zip(self.units, self.first, strict=True)]

    def new_optimizer(
        self, model: nn.Module, settings: Mapping[str, Any] | None = None
    ) -> torch.optim.Optimizer:
        """Return an optimizer that remembers nothing yet, of the clients' settings or of others."""
        o, weights = settings or self.optimizer, model.parameters()
        if o["name"] == "sgd":
            return torch.optim.SGD(weights, o["lr"], o["momentum"], weight_decay=o["weight_decay"])
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[o["name"]]
        betas = (o["beta1"], o["beta2"])
        return kind(weights, o["lr"], betas, o["eps"], o["weight_decay"])

    def server(self) -> nn.Sequential:
        """Return the server's perceptron with its first weights."""
        return perceptron(self.server_units, self.first_server)

    def crops(self, purpose: str, *ids: int) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return what crops minibatch after minibatch as RandomCrop(padding=4) and a flip do."""
        if purpose not in self.augmented:
            return lambda batch: batch
        source = self.noise(purpose, *ids)
        _, height, width = self.shape

        def change(batch: torch.Tensor) -> torch.Tensor:
            shifts = torch.randint(0, 9, (2, len(batch)), generator=source).tolist()
            flips = (torch.rand(len(batch), generator=source) < 0.5).tolist()
            images = []
            for flat, top, left, flip in zip(batch, *shifts, flips, strict=True):
                padded = F.pad(flat.view(*self.shape), [4] * 4, value=self.black)
                image = padded[:, top : top + height, left : left + width]
                images.append((image.flip(2) if flip else image).flatten())
            return torch.stack(images)

        return change


def perceptron(units: Sequence[int], weights: torch.Tensor) -> nn.Sequential:
    """Return linear layers with ReLU between them; `weights` holds layer by layer W, then b."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(units):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    load(model, weights)
    return model


def load(model: nn.Module, weights: torch.Tensor) -> None:
    """Overwrite all weights, in place."""
    vector_to_parameters(weights.clone(), model.parameters())


def vector(model: nn.Module) -> torch.Tensor:
    """Return a copy of all weights, flat."""
    return parameters_to_vector(model.parameters()).detach().clone()


@torch.no_grad()
def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Return how often the largest output is the true class."""
    return float((model(x).argmax(1) == y).double().mean())


@torch.no_grad()
def tested(world: World, *models: nn.Module) -> dict[str, object]:
    """Return test scores, means over models."""
    x, y = world.x_test, world.y_test
    each = [accuracy(model, x, y) for model in models]
    recalls = [[accuracy(m, x[y == c], y[y == c]) for c in y.unique()] for m in models]
    return {
        "accuracy": np.mean(each),
        "accuracy_min": min(each),
        "accuracy_max": max(each),
        "balanced_accuracy": np.mean([np.mean(recall) for recall in recalls]),
        "loss_test": np.mean([cross_entropy(m(x), y).item() for m in models]),
    }


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean of -Σ_c t_c log softmax(z)_c; classes or distributions as targets."""
    if targets.dim() == 1:
        targets = F.one_hot(targets, logits.shape[1]).float()
    return -(targets * logits.log_softmax(1)).sum(1).mean()


def fit(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    x: torch.Tensor,
    targets: torch.Tensor,
    batches: Sequence[Index],
    change: Callable[[torch.Tensor], torch.Tensor] = lambda batch: batch,
    temperature: float = 1.0,
) -> float:
    """Take a step of cross-entropy on each minibatch; return the mean loss over samples.

    `change` may augment the images of a minibatch. The gradient of a loss at a temperature T is
    that of T² times the cross-entropy with softmax(z / T) (Hinton et al. 2015, §2).
    """
    losses: list[float] = []
    for positions in batches:
        optimizer.zero_grad()
        found = model(change(x[positions])) / temperature
        loss = temperature**2 * cross_entropy(found, targets[positions])
        loss.backward()
        optimizer.step()
        losses += [loss.item()] * len(positions)
    return sum(losses) / len(losses)


def trained(world: World, client: int, round_: int, start: torch.Tensor) -> torch.Tensor:
    """Return a client's weights after its private minibatches, with an optimizer that is new."""
    model, mine = perceptron(world.units[client], start), world.private[client]
    batches = world.batches("private", client, round_, len(mine))
    fit(model, world.new_optimizer(model), world.x[mine], world.y[mine], batches)
    return vector(model)
