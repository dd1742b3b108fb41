"""Residual networks: ResNet-18, FedOL's wide ones, and the light 9n+2 family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from fedlogit.models.base import ImageShape, ModelConfig
from fedlogit.models.layers import BatchStatNorm

__all__ = ["Resnet11Heavy", "Resnet18", "Resnet20Heavy", "Resnet56Heavy", "ResnetLight"]

Norm = Callable[[int], nn.Module]
_WIDTHS = (64, 128, 256, 512)


def _conv(fan_in: int, fan_out: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(fan_in, fan_out, size, stride, padding=size // 2, bias=False)


class _Block(nn.Module):
    """Convolutions with batch norm, and a shortcut; ReLU between them and after the sum.

    Args:
        fan_in: Channels that come in.
        channels: Output channels of each convolution.
        sizes: Kernel size of each convolution.
        stride: Of the first 3 x 3 convolution, and of the shortcut.
        norm: Makes a batch norm for so many channels.
    """

    def __init__(
        self, fan_in: int, channels: Sequence[int], sizes: Sequence[int], stride: int, norm: Norm
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        strides = [stride if i == sizes.index(3) else 1 for i in range(len(sizes))]
        inputs = (fan_in, *channels)
        for before, after, size, step in zip(inputs, channels, sizes, strides, strict=False):
            layers += [_conv(before, after, size, step), norm(after), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Sequential()
        if stride != 1 or fan_in != channels[-1]:
            self.shortcut.extend([_conv(fan_in, channels[-1], 1, stride), norm(channels[-1])])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.body(x) + self.shortcut(x)).relu()


class _ResNet(nn.Module):
    """Stem, residual blocks, mean over positions, one linear layer."""

    head = "fc"
    fan_out_normal = True  # first weights of convolutions as in torchvision (fedlogit.models.init)

    def __init__(
        self, stem: nn.Module, blocks: Sequence[nn.Module], features: int, classes: int
    ) -> None:
        super().__init__()
        self.stem = stem
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


def _stem(channels: int, width: int, kind: str, norm: Norm) -> nn.Module:
    if kind == "cifar":
        return nn.Sequential(_conv(channels, width, 3), norm(width), nn.ReLU())
    pool = nn.MaxPool2d(3, 2, padding=1)
    return nn.Sequential(_conv(channels, width, 7, 2), norm(width), nn.ReLU(), pool)


def _basic(
    shape: ImageShape, classes: int, depths: tuple[int, ...], kind: str, norm: Norm
) -> nn.Module:
    """Return a network of basic blocks (two 3 x 3 convolutions), widths 64 to 512."""
    blocks: list[nn.Module] = []
    fan_in = _WIDTHS[0]
    for i, (depth, width) in enumerate(zip(depths, _WIDTHS, strict=True)):
        for j in range(depth):
            stride = 2 if i and not j else 1
            blocks.append(_Block(fan_in, (width, width), (3, 3), stride, norm))
            fan_in = width
    return _ResNet(_stem(shape[0], _WIDTHS[0], kind, norm), blocks, fan_in, classes)


class _Residual(ModelConfig):
    """What the residual networks share.

    Attributes:
        batch_stats: Batch norm without running statistics (TallyTrain, appendix A).
    """

    batch_stats: bool = False

    def norm(self) -> Norm:
        """Return the maker of batch norms."""
        return BatchStatNorm if self.batch_stats else nn.BatchNorm2d


class Resnet18(_Residual):
    """ResNet-18 (He et al. 2016), in torchvision's form or with a stem for small images.

    Attributes:
        stem: ``cifar`` is a 3 x 3 convolution with stride 1 and no pool (11,173,962 parameters):
            we judge that *Who to Trust*'s 84.5 % from 15,000 CIFAR-10 images needs it (not run).
            ``imagenet`` is torchvision's 7 x 7 with stride 2 and a max-pool (11,181,642): only
            that count gives TallyTrain's payloads.
    """

    stem: Literal["cifar", "imagenet"] = "imagenet"

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return _basic(shape, classes, (2, 2, 2, 2), self.stem, self.norm())


class Resnet20Heavy(_Residual):
    """FedOL's "ResNet20, 17 M": blocks [2, 2, 3, 3]; 17,075,274 parameters with ten classes.

    The paper's 65.14 MB are 4 bytes times this count in MiB; CIFAR's usual ResNet-20 has 0.27 M.
    """

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return _basic(shape, classes, (2, 2, 3, 3), "cifar", self.norm())


class Resnet11Heavy(_Residual):
    """FedOL's "ResNet11" in the family of `Resnet20Heavy`: blocks [1, 1, 1, 2]; our choice."""

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return _basic(shape, classes, (1, 1, 1, 2), "cifar", self.norm())


class Resnet56Heavy(_Residual):
    """FedOL's "ResNet56" in the family of `Resnet20Heavy`: blocks [6, 7, 8, 7]; our choice."""

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        return _basic(shape, classes, (6, 7, 8, 7), "cifar", self.norm())


class ResnetLight(_Residual):
    """ResNet-(9n+2): three stages of n bottlenecks, widths 16, 32, 64, expansion 4.

    n = 1, 2, 6 give ResNet11, 20 and 56: one family in which all three of FedOL's names are right.
    With 100 classes they have 0.151, 0.244 and 0.614 M parameters. A bottleneck is 1 x 1, 3 x 3
    (with the stride), 1 x 1, each with batch norm, and ReLU after the sum; the first of each stage
    has a 1 x 1 convolution with batch norm as shortcut. n = 6 is the ``resnet56`` of FedML's code.

    Attributes:
        n: Bottlenecks in a stage.
    """

    n: Annotated[int, Field(gt=0)]

    def network(self, shape: ImageShape, classes: int) -> nn.Module:
        """Return the network."""
        norm = self.norm()
        blocks: list[nn.Module] = []
        fan_in = 16
        for i, width in enumerate((16, 32, 64)):
            for j in range(self.n):
                stride = 2 if i and not j else 1
                channels = (width, width, 4 * width)
                blocks.append(_Block(fan_in, channels, (1, 3, 1), stride, norm))
                fan_in = 4 * width
        return _ResNet(_stem(shape[0], 16, "cifar", norm), blocks, fan_in, classes)
