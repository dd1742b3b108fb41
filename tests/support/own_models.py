"""Models of one's own that an engine of built-in ones would run wrongly, or not at all."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from fedlogit.models import ModelConfig
from fedlogit.models.mlp import MlpNetwork

__all__ = ["FunctionalConvolution", "SamePadding", "TanhMlp", "TanhNet"]


class TanhNet(MlpNetwork):
    """A perceptron with tanh in place of ReLU: compiled code would leave out what it overrides."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *inner, last = self.children()
        x = x.flatten(1)
        for layer in inner:
            x = layer(x).tanh()
        return last(x)


class TanhMlp(ModelConfig):
    """A perceptron with tanh."""

    def network(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return TanhNet(shape, (24,), classes, 0)


class _Convolution(nn.Module):
    head = "last"

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(shape[0], 4, 3, padding="same", bias=False)
        self.last = nn.Linear(4 * shape[1] * shape[2], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x).relu().flatten(1))


class _FunctionalConvolution(_Convolution):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(F.conv2d(x, self.first.weight, padding=1).relu().flatten(1))


class SamePadding(ModelConfig):
    """A convolution whose padding is a word."""

    def network(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return _Convolution(shape, classes)


class FunctionalConvolution(ModelConfig):
    """A convolution that is called with keywords."""

    def network(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return _FunctionalConvolution(shape, classes)
