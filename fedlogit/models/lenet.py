"""LeNet-5, the clients of *Who to Trust?* on MNIST (§4.2)."""

from __future__ import annotations

import torch
from torch import nn

from fedlogit.models.base import ImageShape, ModelConfig
from fedlogit.models.layers import MaxPool2x2

__all__ = ["Lenet"]


class Lenet(ModelConfig):
    """LeNet-5 with ReLU and max-pooling; 61,706 parameters for 28 x 28 x 1 and ten classes.

    The paper says "LeNet" and cites LeCun et al. (1998); this is the usual modern form: conv 5 x 5
    to 6 channels with padding 2, pool, conv 5 x 5 to 16, pool, 120-84-classes.
    """

    smallest = 12

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return _LeNet(shape, classes)


class _LeNet(nn.Module):
    head = "fc3"

    def __init__(self, shape: ImageShape, classes: int) -> None:
        super().__init__()
        channels, *sides = shape
        height, width = ((side // 2 - 4) // 2 for side in sides)
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.pool = MaxPool2x2()
        self.fc1 = nn.Linear(16 * height * width, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # ReLU and maximum commute, and so do their gradients: ReLU after the pool gives the same
        # numbers as before it, on a quarter as many.
        x = self.pool(self.conv1(x)).relu()
        x = self.pool(self.conv2(x)).relu()
        x = self.fc1(x.flatten(1)).relu()
        return self.fc3(self.fc2(x).relu())
