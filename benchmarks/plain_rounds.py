"""What a repetition of each kind of workload is in plain PyTorch: one model after the other."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from plain_samples import Batches, served
from protocol import Exported
from torch import nn
from torch_models import accuracy, augmented, network, optimizer, with_weights

BATCH = 500  # samples of a pass without gradients


class Kind(Protocol):
    """A workload, repetition by repetition."""

    def run(self, round_: int) -> None: ...

    def accuracy(self) -> float: ...


def model_of(data: Exported, client: int = 0) -> nn.Module:
    """Return a client's first model; what is not in `torch_models` is torchvision's or ours."""
    how = data.settings
    if how["model"] == "resnet18":
        from torchvision.models import resnet18

        plain = resnet18(num_classes=how["classes"], norm_layer=_batch_statistics)
    elif how["model"] == "tiny_gpt":
        from fedlogit.models.tiny_gpt import TinyGPT

        plain = TinyGPT().network(tuple(how["shape"]), how["classes"])
    else:
        return network(data, client)
    return augmented(with_weights(plain, data.weights(client)), data)


def _batch_statistics(features: int) -> nn.Module:
    return nn.BatchNorm2d(features, track_running_stats=False)


def train(model: nn.Module, steps: torch.optim.Optimizer, batches: Batches) -> None:
    """Minimise cross-entropy; targets are classes or distributions."""
    model.train()
    for x, y in batches:
        steps.zero_grad()
        F.cross_entropy(_rows(model(x)), y if y.is_floating_point() else y.flatten()).backward()
        steps.step()


def _rows(logits: torch.Tensor) -> torch.Tensor:
    return logits.flatten(0, -2)


@torch.no_grad()
def predicted(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return logits."""
    model.eval()
    return torch.cat([model(part) for part in x.split(BATCH)])


@torch.no_grad()
def merge(model: nn.Module, clients: Sequence[nn.Module], sizes: Sequence[int]) -> None:
    """Give a model the average of the clients', weighed by samples."""
    for mine, *theirs in zip(model.parameters(), *(c.parameters() for c in clients), strict=True):
        mine.copy_(sum(p * (n / sum(sizes)) for p, n in zip(theirs, sizes, strict=True)))


class Average:
    """Federated averaging."""

    def __init__(self, data: Exported, way: str) -> None:
        self.data, self.model, self.serve = data, model_of(data), served(data, way)
        self.sizes, self.test = data.sizes(), tuple(map(torch.as_tensor, data.test()))

    def run(self, round_: int) -> None:
        present = self.data.present(round_)
        clients = [copy.deepcopy(self.model) for _ in present]
        for i, client in zip(present, clients, strict=True):
            batches = self.serve[i](self.data.order(round_, i))
            train(client, optimizer(self.data, client), batches)
        merge(self.model, clients, [self.sizes[i] for i in present])

    def accuracy(self) -> float:
        return accuracy(self.model, *self.test)


class _Own:
    """Clients that keep their models and optimizers."""

    def __init__(self, data: Exported, way: str) -> None:
        self.data, self.serve = data, served(data, way)
        self.test = tuple(map(torch.as_tensor, data.test()))
        self.x, self.y = map(torch.as_tensor, data.public())
        self.models = [model_of(data, i) for i in data.clients]
        self.optimizers = [optimizer(data, model) for model in self.models]

    def private(self, round_: int) -> None:
        for i, (model, steps) in enumerate(zip(self.models, self.optimizers, strict=True)):
            train(model, steps, self.serve[i](self.data.order(round_, i)))

    def accuracy(self) -> float:
        return float(np.mean([accuracy(model, *self.test) for model in self.models]))


class Distil(_Own):
    """Local epoch, logits on the public set, distillation of their mean."""

    def run(self, round_: int) -> None:
        self.private(round_)
        targets = torch.stack([predicted(m, self.x) for m in self.models]).mean(0).softmax(-1)
        for i, (model, steps) in enumerate(zip(self.models, self.optimizers, strict=True)):
            order = map(torch.as_tensor, self.data.order(round_, i, "distil"))
            train(model, steps, ((self.x[b], targets[b]) for b in order))


class Vote(_Own):
    """Local steps, votes on probes, one step on their labels and the share of votes."""

    def run(self, round_: int) -> None:
        self.private(round_)
        probes = torch.as_tensor(self.data.probes(round_))
        x, y = self.x[probes], self.y[probes]
        classes = self.data.settings["classes"]
        votes = torch.stack([predicted(model, x).argmax(-1) for model in self.models])
        share = torch.zeros(*votes.shape[1:], classes)
        for vote in votes:
            share += F.one_hot(vote, classes)
        weight = self.data.settings["label_weight"]
        targets = weight * F.one_hot(y, classes) + (1 - weight) * share / len(votes)
        for model, steps in zip(self.models, self.optimizers, strict=True):
            if isinstance(model, nn.Sequential) and self.data.settings["augment"]:
                model = model[1]  # probes are as they are
            train(model, steps, [(x, targets.flatten(0, -2))])


class Test:
    """The accuracy of every model on the test split."""

    def __init__(self, data: Exported, way: str) -> None:
        self.models = [model_of(data, i) for i in data.clients]
        self.test = tuple(map(torch.as_tensor, data.test()))
        self.found: list[float] = []

    def run(self, round_: int) -> None:
        self.found = [accuracy(model, *self.test) for model in self.models]

    def accuracy(self) -> float:
        return float(np.mean(self.found))


class Maximise:
    """CELM's logit maximisation, one model and one class at a time."""

    def __init__(self, data: Exported, way: str) -> None:
        self.how = data.settings
        self.models = [model_of(data, i) for i in range(-1, len(data.clients))]
        self.shape = torch.as_tensor(data.test()[0][:1]).shape
        self.reached: list[float] = []

    def run(self, round_: int) -> None:
        classes = range(self.how["classes"])
        self.reached = [self._ascend(model, c) for model in self.models for c in classes]

    def _ascend(self, model: nn.Module, label: int) -> float:
        x = torch.randn(self.shape, requires_grad=True)
        steps = torch.optim.Adam([x], lr=self.how["ascent"])
        for _ in range(self.how["steps"]):
            steps.zero_grad()
            loss = self.how["penalty"] * x.square().sum() - model(x)[0, label]
            loss.backward()
            steps.step()
        with torch.no_grad():
            return float(model(x)[0, label])

    def accuracy(self) -> float:
        return float("nan")


KINDS = {"average": Average, "distil": Distil, "vote": Vote, "test": Test, "maximise": Maximise}
