"""Second version of the light residual network with one bottleneck per stage, on digits.

Batch norm is written out: by the batch's own statistics, as TallyTrain's appendix A has it, or by
running ones (momentum 0.1, variances of a sample) where it predicts.
"""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["ResNet11"]


class Norm(nn.Module):
    """Batch norm, by the batch's own statistics always or only in training."""

    def __init__(self, channels: int, own_statistics: bool) -> None:
        super().__init__()
        self.scale, self.shift = (nn.Parameter(torch.empty(channels)) for _ in range(2))
        self.always = own_statistics
        if not self.always:
            self.register_buffer("mean", torch.zeros(channels))
            self.register_buffer("variance", torch.ones(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
        if not self.always and self.training:
            self.mean = 0.9 * self.mean + 0.1 * mean.detach()
            self.variance = 0.9 * self.variance + 0.1 * x.detach().var((0, 2, 3))
        elif not self.always:
            mean, variance = self.mean, self.variance
        x = (x - mean[:, None, None]) / (variance[:, None, None] + 1e-5) ** 0.5
        return x * self.scale[:, None, None] + self.shift[:, None, None]


class ResNet11(nn.Module):
    """A stem, three bottlenecks of widths 16, 32 and 64, and a linear layer, on digits."""

    def __init__(self, own_statistics: bool) -> None:
        super().__init__()

        def both(fan_in: int, fan_out: int, size: int, stride: int = 1) -> list[nn.Module]:
            conv = nn.Conv2d(fan_in, fan_out, size, stride, size // 2, bias=False)
            return [conv, Norm(fan_out, own_statistics)]

        self.stem = nn.Sequential(*both(1, 16, 3), nn.ReLU())
        self.blocks, fan_in = nn.ModuleList(), 16
        for width, stride in ((16, 1), (32, 2), (64, 2)):
            one, two = both(fan_in, width, 1), both(width, width, 3, stride)
            body = [*one, nn.ReLU(), *two, nn.ReLU(), *both(width, 4 * width, 1)]
            short = both(fan_in, 4 * width, 1, stride)
            self.blocks.append(nn.ModuleList([nn.Sequential(*body), nn.Sequential(*short)]))
            fan_in = 4 * width
        self.last = nn.Linear(fan_in, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x.view(-1, 1, 8, 8))
        for body, shortcut in self.blocks:
            x = (body(x) + shortcut(x)).relu()
        return self.last(x.mean((2, 3)))
