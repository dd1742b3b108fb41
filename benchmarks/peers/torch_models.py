"""The models of the workloads in plain PyTorch, for the plain loops and for peers."""

from __future__ import annotations

import torch
from protocol import Exported
from torch import nn

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


def network(data: Exported) -> nn.Module:
    """Return the workload's model with its first weights."""
    shapes = [w.shape for w in data.weights]
    model = {"mlp": mlp, "lenet": lenet, "tf_cnn": tf_cnn}[data.settings["model"]](shapes)
    with torch.no_grad():
        for mine, first in zip(model.parameters(), data.weights, strict=True):
            mine.copy_(torch.as_tensor(first))
    return model


def optimizer(data: Exported, model: nn.Module) -> torch.optim.Optimizer:
    """Return the workload's optimizer of a model."""
    kind = OPTIMIZERS[data.settings["optimizer"]]
    return kind(model.parameters(), lr=data.settings["rate"])


def mlp(shapes: list[tuple[int, ...]]) -> nn.Module:
    """Return linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for outputs, inputs in shapes[::2]:
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet(shapes: list[tuple[int, ...]]) -> nn.Module:
    """Return LeNet-5 with ReLU and max-pooling."""
    channels, features, classes = shapes[0][1], shapes[4][1], shapes[-1][0]
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(features, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes),
    )  # fmt: skip


def tf_cnn(shapes: list[tuple[int, ...]]) -> nn.Module:
    """Return three convolutions and two linear layers, as TensorFlow's tutorial has them."""
    channels, features, classes = shapes[0][1], shapes[6][1], shapes[-1][0]
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, classes),
    )  # fmt: skip


@torch.no_grad()
def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Return the share of test samples that a model gets right."""
    model.eval()
    right = [model(a).argmax(1) == b for a, b in zip(x.split(1000), y.split(1000), strict=True)]
    return float(torch.cat(right).float().mean())
