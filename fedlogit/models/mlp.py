"""Multi-layer perceptrons: CELM's for Fashion-MNIST and EMNIST, and a small one for anything."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import nn

from fedlogit.models.base import ImageShape, ModelConfig

__all__ = ["Mlp", "Mlp4w", "MlpNet", "MlpNetwork"]


class MlpNetwork(nn.Module):
    """Linear layers with ReLU between them, on flattened images, zero-padded by `pad` all round.

    Attributes:
        sizes: Units of each layer, the classes last.
    """

    def __init__(self, shape: ImageShape, hidden: Sequence[int], classes: int, pad: int) -> None:
        super().__init__()
        channels, height, width = shape
        sizes = [channels * (height + 2 * pad) * (width + 2 * pad), *hidden, classes]
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes), start=1):
            self.add_module(f"fc{i}", nn.Linear(fan_in, fan_out))
        self.head = f"fc{len(hidden) + 1}"
        self.pad = pad
        self.sizes = sizes[1:]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (n, classes)."""
        x = F.pad(x, [self.pad] * 4) if self.pad else x
        x = x.flatten(1)
        *inner, last = self.children()
        for layer in inner:
            x = layer(x).relu()
        return last(x)


class MlpNet(ModelConfig):
    """128-64-classes on images padded by two: 140,106 parameters for Fashion-MNIST.

    CELM §5 says "4-layer MLP"; the network of that name in its first author's public code
    (spectralfuse) has four layers of units, three of weights, and 1,024 inputs, which 28 x 28
    images have only when padded to 32 x 32. The other reading is `mlp4w`.

    Attributes:
        pad: Pixels of zeros around the (normalised) image; 0 leaves 784 inputs.
    """

    pad: Annotated[int, Field(ge=0)] = 2

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return MlpNetwork(shape, (128, 64), classes, self.pad)


class Mlp4w(ModelConfig):
    """256-128-64-classes: four layers of weights, the other reading of CELM's "4-layer MLP"."""

    name = "mlp4w"

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return MlpNetwork(shape, (256, 128, 64), classes, 0)


class Mlp(ModelConfig):
    """A perceptron of any size, for small images and tests.

    Attributes:
        hidden: Units of each hidden layer; empty for logistic regression.
    """

    hidden: tuple[Annotated[int, Field(gt=0)], ...] = (32,)

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return MlpNetwork(shape, self.hidden, classes, 0)
