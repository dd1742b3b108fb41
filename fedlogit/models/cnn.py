"""CELM's "5-layer CNN" for CIFAR-10."""

from __future__ import annotations

import torch
from torch import nn

from fedlogit.models.base import ImageShape, ModelConfig
from fedlogit.models.layers import MaxPool2x2

__all__ = ["TfCnn", "TfCnnNetwork"]


class TfCnn(ModelConfig):
    """Three 3 x 3 convolutions (32, 64, 64) and two linear layers; 122,570 parameters for CIFAR-10.

    CELM §5 says "5-layer CNN"; this is the network in its first author's public code
    (spectralfuse), named there after the TensorFlow tutorial that it comes from.
    """

    smallest = 18

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return TfCnnNetwork(shape, classes)


class TfCnnNetwork(nn.Module):
    """Its layers; compiled code computes the same."""

    head = "fc2"

    def __init__(self, shape: ImageShape, classes: int) -> None:
        super().__init__()
        channels, *sides = shape
        height, width = (((side - 2) // 2 - 2) // 2 - 2 for side in sides)
        self.conv1 = nn.Conv2d(channels, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.pool = MaxPool2x2()
        self.fc1 = nn.Linear(64 * height * width, 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (n, classes) of images (n, channels, height, width)."""
        # ReLU and maximum commute, and so do their gradients: ReLU after the pool gives the same
        # numbers as before it, on a quarter as many.
        x = self.pool(self.conv1(x)).relu()
        x = self.pool(self.conv2(x)).relu()
        x = self.conv3(x).relu()
        return self.fc2(self.fc1(x.flatten(1)).relu())
