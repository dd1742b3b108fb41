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

__all__ = ["World", "cross_entropy", "fit", "perceptron", "vector"]

Index = torch.Tensor


@dataclass(frozen=True)
class World:
    """The problem that both versions solve.

    Attributes:
        x: Normalised training images, flattened, float32 (n, features).
        y: Their classes, int64 (n,).
        x_test: The same of the test split.
        y_test: The same of the test split.
        classes: Number of classes C.
        private: Training samples of each client, without those it holds out.
        validation: Samples that each client holds out.
        public: Public samples.
        counts: Samples of each class at each client, int64 (clients, classes).
        units: Units of each client's perceptron, layer by layer.
        first: First weights of each client, a flat float32 vector a client.
        server_units: The same of the server's model; empty without one.
        first_server: First weights of the server's model; empty without one.
        batch: Minibatch size.
        rate: Learning rate.
        epochs: Passes over the data in each stage.
        server_epochs: Passes over the public set each time the server's model learns.
        batches: (stage, client, round, number of samples) -> positions of each minibatch.
        server_batches: (round, part, number of samples) -> the same for the server's model.
        probes: (round, how many) -> public samples of a round.
        numbers: (purpose, *ids) -> NumPy generator, for what else is drawn.
        noise: (purpose, *ids) -> PyTorch generator, for what else is drawn.
        optimizer: The clients' optimizer: name, lr, weight_decay, … as the spec has them.
        graph: (neighbours) -> who hears whom in the run's regular graph, bool (clients, clients).
    """

    x: torch.Tensor
    y: torch.Tensor
    x_test: torch.Tensor
    y_test: torch.Tensor
    classes: int
    private: Sequence[Index]
    validation: Sequence[Index]
    public: Index
    counts: np.ndarray
    units: Sequence[Sequence[int]]
    first: Sequence[torch.Tensor]
    server_units: Sequence[int]
    first_server: torch.Tensor
    batch: int
    rate: float
    epochs: int
    server_epochs: int
    batches: Callable[[str, int, int, int], list[Index]] = field(repr=False)
    server_batches: Callable[[int, int, int], list[Index]] = field(repr=False)
    probes: Callable[[int, int], Index] = field(repr=False)
    numbers: Callable[..., np.random.Generator] = field(repr=False)
    noise: Callable[..., torch.Generator] = field(repr=False)
    optimizer: Mapping[str, Any] = field(repr=False)
    graph: Callable[[int], np.ndarray] = field(repr=False)

    @property
    def clients(self) -> range:
        """The clients' numbers."""
        return range(len(self.private))

    def models(self) -> list[nn.Sequential]:
        """Return each client's perceptron with its first weights."""
        return [perceptron(u, w) for u, w in zip(self.units, self.first, strict=True)]

    def server(self) -> nn.Sequential:
        """Return the server's perceptron with its first weights."""
        return perceptron(self.server_units, self.first_server)


def perceptron(units: Sequence[int], weights: torch.Tensor) -> nn.Sequential:
    """Return linear layers with ReLU between them; `weights` holds layer by layer W, then b."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(units):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    vector_to_parameters(weights.clone(), model.parameters())
    return model


def vector(model: nn.Module) -> torch.Tensor:
    """Return a copy of all weights, flat."""
    return parameters_to_vector(model.parameters()).detach().clone()


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
) -> None:
    """Take a step of cross-entropy on each minibatch."""
    for positions in batches:
        optimizer.zero_grad()
        cross_entropy(model(x[positions]), targets[positions]).backward()
        optimizer.step()
