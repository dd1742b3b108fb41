"""The workloads' models in plain PyTorch, for the plain loops and for peers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from protocol import Exported
from torch import nn

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
PADDING = 4  # pixels on each side before a crop


def perceptron(weights: Sequence[np.ndarray]) -> nn.Module:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for matrix in weights[::2]:
        layers += [nn.Linear(matrix.shape[1], matrix.shape[0]), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet(weights: Sequence[np.ndarray]) -> nn.Module:
    """LeNet-5, whose sizes are those of its weights."""
    channels, features = weights[0].shape[1], weights[4].shape[1]
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(features, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, len(weights[-1])),
    )  # fmt: skip


def tf_cnn(weights: Sequence[np.ndarray]) -> nn.Module:
    """CELM's CNN, whose sizes are those of its weights."""
    channels, features = weights[0].shape[1], weights[6].shape[1]
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, len(weights[-1])),
    )  # fmt: skip


def lenet_bn(weights: Sequence[np.ndarray]) -> nn.Module:
    """LeNet-5 for images of any size, with batch norm that keeps no statistics."""
    features, no_state = weights[6].shape[1], {"track_running_stats": False}
    return nn.Sequential(
        nn.Conv2d(weights[0].shape[1], 6, 5, padding=2, bias=False),
        nn.BatchNorm2d(6, **no_state), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5, bias=False),
        nn.BatchNorm2d(16, **no_state), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(features, 120, bias=False), nn.BatchNorm1d(120, **no_state), nn.ReLU(),
        nn.Linear(120, 84, bias=False), nn.BatchNorm1d(84, **no_state), nn.ReLU(),
        nn.Linear(84, len(weights[-1])),
    )  # fmt: skip


MODELS = {
    "lenet": lenet, "lenet_bn": lenet_bn, "tf_cnn": tf_cnn, "mlp": perceptron,
    "mlp_net": perceptron,
}  # fmt: skip


class CropFlip(nn.Module):
    """Crops and mirrors normalised images at random while a model trains."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.black = -torch.tensor(mean).div(torch.tensor(std)).view(1, -1, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        n, _, height, width = x.shape
        padded = F.pad(x - self.black, [PADDING] * 4) + self.black
        top, left = torch.randint(0, 2 * PADDING + 1, (2, n, 1))
        columns = torch.arange(width).repeat(n, 1)
        mirrored = torch.rand(n) < 0.5
        columns[mirrored] = columns[mirrored].flip(1)
        rows, columns = top + torch.arange(height), left + columns
        every = torch.arange(n)[:, None, None]
        picked = padded[every, :, rows[:, :, None], columns[:, None, :]]
        return picked.permute(0, 3, 1, 2).contiguous()


def network(data: Exported, client: int = 0) -> nn.Module:
    """Return a client's model with its first weights."""
    weights = data.weights(client)
    return augmented(with_weights(MODELS[data.settings["model"]](weights), weights), data)


def augmented(model: nn.Module, data: Exported) -> nn.Module:
    """Return a model that crops and flips what it trains on, where the workload does."""
    how = data.settings
    return nn.Sequential(CropFlip(how["mean"], how["std"]), model) if how["augment"] else model


def with_weights(model: nn.Module, weights: Iterable[np.ndarray]) -> nn.Module:
    """Give a model its weights, which come in the order of its parameters."""
    with torch.no_grad():
        for mine, first in zip(model.parameters(), weights, strict=True):
            mine.copy_(torch.as_tensor(first))
    return model


def optimizer(data: Exported, model: nn.Module) -> torch.optim.Optimizer:
    """Return an optimizer as the workload's settings say."""
    how = data.settings
    kind = OPTIMIZERS[how["optimizer"]]
    return kind(model.parameters(), lr=how["rate"], weight_decay=how["decay"])


@torch.no_grad()
def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Return the share of test samples that a model gets right, in parts of 500."""
    model.eval()
    right = [(model(a).argmax(-1) == b).flatten() for a, b in zip(x.split(500), y.split(500))]  # noqa: B905
    return float(torch.cat(right).float().mean())
