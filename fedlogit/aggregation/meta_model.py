"""The meta-model aggregator: a classifier of all logits (Who to Trust §3.1.2, eq. 3-4).

The paper names "a small neural network, random forest, or gradient boosting model" and gives no
more; the sizes below are ours. All return class probabilities, because the distillation step of
Algorithm 1 needs soft targets where eq. 4 has an argmax.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fedlogit.models.init import Uninitialised, initialise
from fedlogit.optimizers import Adam
from fedlogit.rng import derive, torch_rng

__all__ = ["Classifier", "features", "fit_and_predict"]

Classifier = Literal["mlp", "forest", "boosting"]

HIDDEN, DROPOUT, RATE, BATCH, EPOCHS, PATIENCE = 128, 0.2, 1e-3, 128, 50, 5


def features(logits: torch.Tensor) -> torch.Tensor:
    """Return h(x) of eq. 3: all clients' logits side by side.

    Args:
        logits: (clients, points, classes).

    Returns:
        (points, clients · classes).
    """
    return logits.transpose(0, 1).flatten(1)


def fit_and_predict(
    kind: Classifier,
    auxiliary: torch.Tensor,
    labels: torch.Tensor,
    public: torch.Tensor,
    classes: int,
    seed: int,
) -> torch.Tensor:
    """Train A on the logits of labelled samples; return its class probabilities on public ones.

    Args:
        kind: Which classifier.
        auxiliary: Clients' logits on labelled samples, (clients, n, classes).
        labels: Their classes, (n,).
        public: Clients' logits on public samples, (clients, points, classes).
        classes: Number of classes C.
        seed: Of the classifier's own randomness.

    Returns:
        softmax(A(h(x))), float32 (points, classes).
    """
    h, h_public = features(auxiliary), features(public)
    mean, std = h.mean(0), _scale(h)
    h, h_public = (h - mean) / std, (h_public - mean) / std
    if kind == "mlp":
        return _fit_mlp(h, labels, classes, seed)(h_public)
    return _fit_trees(kind, h, labels, h_public, classes, seed)


def _scale(h: torch.Tensor) -> torch.Tensor:
    """Return what to divide each feature by: its deviation, or 1 where it is constant.

    As scikit-learn's `StandardScaler` has it: a network whose last hidden layer is dead on the
    labelled samples has constant logits there, and a quotient by nearly 0 would make what other
    samples have outweigh all other features. Constant is what rounding may explain.
    """
    std = h.std(0) if len(h) > 1 else torch.zeros_like(h[0])
    return torch.where(std > torch.finfo(h.dtype).eps * h.abs().amax(0), std, 1)


class _Network:
    """200-128-10 for 20 clients and 10 classes: ReLU, dropout 0.2."""

    def __init__(self, inputs: int, classes: int, seed: int, device: torch.device) -> None:
        with Uninitialised():
            self.layers = nn.ModuleList([nn.Linear(inputs, HIDDEN), nn.Linear(HIDDEN, classes)])
        initialise(self.layers, torch_rng(seed, "init"))
        self.layers.to(device)

    def forward(self, h: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits; `keep` (n, 128) is what dropout leaves while training."""
        hidden = self.layers[0](h).relu()
        if keep is not None:
            hidden = hidden * keep / (1 - DROPOUT)
        return self.layers[1](hidden)

    @torch.no_grad()
    def __call__(self, h: torch.Tensor) -> torch.Tensor:
        return self.forward(h).softmax(1)


def _fit_mlp(h: torch.Tensor, labels: torch.Tensor, classes: int, seed: int) -> _Network:
    """Train with Adam until the loss on a held-out tenth has not fallen for five epochs."""
    network = _Network(h.shape[1], classes, seed, h.device)
    optimizer = Adam(network.layers.parameters(), RATE, fused=True)
    order = torch.randperm(len(h), generator=torch_rng(seed, "holdout")).to(h.device)
    tenth = max(1, len(h) // 10)
    held, rest = (order[:tenth], order[tenth:]) if len(h) > 1 else (order, order)
    shuffle, noise = torch_rng(seed, "batches"), torch_rng(seed, "dropout")
    best, weights, waited = np.inf, None, 0
    for _ in range(EPOCHS):
        for rows, keep in _epoch(rest, shuffle, noise):
            optimizer.zero_grad()
            F.cross_entropy(network.forward(h[rows], keep), labels[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            loss = float(F.cross_entropy(network.forward(h[held]), labels[held]))
        if loss < best:
            best, waited = loss, 0
            weights = {k: v.clone() for k, v in network.layers.state_dict().items()}
        elif (waited := waited + 1) >= PATIENCE:
            break
    if weights is not None:
        network.layers.load_state_dict(weights)
    return network


def _epoch(
    rows: torch.Tensor, shuffle: torch.Generator, noise: torch.Generator
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield minibatches of `rows` and what dropout keeps, both moved to the device at once.

    The generators are owned; `F.dropout` draws from the global one.
    """
    order = torch.randperm(len(rows), generator=shuffle)
    sizes = [len(batch) for batch in order.split(BATCH)]
    keep = torch.cat([torch.rand(n, HIDDEN, generator=noise) >= DROPOUT for n in sizes])
    batches = rows[order.to(rows.device)].split(sizes)
    yield from zip(batches, keep.to(rows.device).split(sizes), strict=True)


def _fit_trees(
    kind: str,
    h: torch.Tensor,
    labels: torch.Tensor,
    h_public: torch.Tensor,
    classes: int,
    seed: int,
) -> torch.Tensor:
    from sklearn import ensemble  # takes a second to import

    state = derive(seed, "trees") % 2**32
    if kind == "forest":
        model = ensemble.RandomForestClassifier(200, random_state=state)
    else:
        model = ensemble.HistGradientBoostingClassifier(random_state=state)
    model.fit(h.cpu().numpy(), labels.cpu().numpy())
    result = torch.zeros(len(h_public), classes)
    if len(model.classes_) == 1:  # for which boosting has two columns
        result[:, int(model.classes_[0])] = 1
        return result.to(h_public.device)
    result[:, torch.as_tensor(model.classes_)] = torch.as_tensor(
        model.predict_proba(h_public.cpu().numpy()), dtype=torch.float32
    )
    return result.to(h_public.device)
