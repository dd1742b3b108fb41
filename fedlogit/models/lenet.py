"""LeNet-5, the clients of *Who to Trust?* on MNIST (§4.2), and two variants."""

from __future__ import annotations

import torch
from torch import nn

from fedlogit.models.base import ImageShape, ModelConfig
from fedlogit.models.layers import BatchStatNorm, MaxPool2x2

__all__ = [
    "Lenet",
    "LenetBn",
    "LenetBnNetwork",
    "LenetNetwork",
    "LenetTanh",
    "LenetTanhNetwork",
]


class Lenet(ModelConfig):
    """LeNet-5 with ReLU and max-pooling; 61,706 parameters for 28 x 28 x 1 and ten classes.

    The paper says "LeNet" and cites LeCun et al. (1998); this is the usual modern form: conv 5 x 5
    to 6 channels with padding 2, pool, conv 5 x 5 to 16, pool, 120-84-classes.
    """

    smallest = 12

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return LenetNetwork(shape, classes)


class LenetBn(ModelConfig):
    """LeNet-5 whose hidden layers are normalised by the batch, as all of a ResNet's are.

    Not in a paper: the small model for methods that average models which start apart (TallyTrain's
    peers do, §4). An average of N first weights is √N times smaller in each layer. Where
    every layer but the last is normalised, as in that paper's ResNet-18, only the last layer's √N
    is left of it; LeNet's five layers multiply theirs.

    Statistics are the batch's own at training and at test time, as in the paper.
    """

    smallest = 12

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return LenetBnNetwork(shape, classes)


class LenetTanh(ModelConfig):
    """LeNet-5 with tanh and average-pooling, as in LeCun et al. (1998); as many parameters.

    Otherwise it is `Lenet`: pools without weights, all maps connected to all, a linear last layer.
    """

    smallest = 12

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return LenetTanhNetwork(shape, classes)


class LenetNetwork(nn.Module):
    """Its layers; compiled code computes the same."""

    head = "fc3"

    def __init__(self, shape: ImageShape, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(shape[0], 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.pool = MaxPool2x2()
        self.fc1 = nn.Linear(_positions(shape), 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (n, classes) of images (n, channels, height, width)."""
        # ReLU and maximum commute, and so do their gradients: ReLU after the pool gives the same
        # numbers as before it, on a quarter as many.
        x = self.pool(self.conv1(x)).relu()
        x = self.pool(self.conv2(x)).relu()
        x = self.fc1(x.flatten(1)).relu()
        return self.fc3(self.fc2(x).relu())


class LenetBnNetwork(nn.Module):
    """The same layers; those before a norm have no bias, which the norm would undo.

    Compiled code computes the same.
    """

    head = "fc3"

    def __init__(self, shape: ImageShape, classes: int) -> None:
        super().__init__()
        self.hidden = nn.Sequential(
            nn.Conv2d(shape[0], 6, 5, padding=2, bias=False),
            *(BatchStatNorm(6), MaxPool2x2(), nn.ReLU()),
            nn.Conv2d(6, 16, 5, bias=False),
            *(BatchStatNorm(16), MaxPool2x2(), nn.ReLU()),
            nn.Flatten(),
            nn.Linear(_positions(shape), 120, bias=False),
            *(BatchStatNorm(120), nn.ReLU()),
            nn.Linear(120, 84, bias=False),
            *(BatchStatNorm(84), nn.ReLU()),
        )
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (n, classes) of images (n, channels, height, width)."""
        return self.fc3(self.hidden(x))


class LenetTanhNetwork(nn.Module):
    """The same layers with other activations and pools."""

    head = "fc3"

    def __init__(self, shape: ImageShape, classes: int) -> None:
        super().__init__()
        self.hidden = nn.Sequential(
            *(nn.Conv2d(shape[0], 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()),
            *(nn.Linear(_positions(shape), 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh()),
        )
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (n, classes) of images (n, channels, height, width)."""
        return self.fc3(self.hidden(x))


def _positions(shape: ImageShape) -> int:
    """Return the features that the convolutions leave."""
    height, width = ((side // 2 - 4) // 2 for side in shape[1:])
    return 16 * height * width
