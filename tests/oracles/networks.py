"""Architectures, a second time, with their weights in the order in which a flat vector has them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from oracles.world import perceptron
from torch import nn
from torch.nn.utils import vector_to_parameters

__all__ = ["network"]


def network(kind: str, units: Sequence[int], weights: torch.Tensor) -> nn.Module:
    """Return a network with these weights; `units` are those of a perceptron."""
    if kind == "perceptron":
        return perceptron(units, weights)
    made = {
        "tiny_gpt": lambda: TinyGPT(vocabulary=300, width=16, heads=2, context=32),
        "batch_statistics": lambda: ResNet11(own_statistics=True),
        "running_statistics": lambda: ResNet11(own_statistics=False),
    }[kind]()
    vector_to_parameters(weights.clone(), made.parameters())
    return made


class TinyGPT(nn.Module):
    """One block of TallyTrain's transformer (appendix I): no bias, norms first, untied output."""

    def __init__(self, vocabulary: int, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.norm1, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width, bias=False)
        self.out, self.norm2 = nn.Linear(width, width, bias=False), nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.norm3, self.last = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.heads = heads

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.word(tokens) + self.place(torch.arange(tokens.shape[1]))
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        seen, length = [], tokens.shape[1]
        earlier = torch.tensor([[s <= t for s in range(length)] for t in range(length)])
        for a, b, c in zip(*(part.chunk(self.heads, -1) for part in (q, k, v)), strict=True):
            attention = (a @ b.mT / a.shape[-1] ** 0.5).exp() * earlier
            seen.append(attention / attention.sum(-1, keepdim=True) @ c)
        x = x + self.out(torch.cat(seen, -1))
        h = self.up(self.norm2(x))
        x = x + self.down(h * 0.5 * (1 + torch.erf(h / 2**0.5)))  # GELU
        return self.last(self.norm3(x))


class Norm(nn.Module):
    """Batch norm by the batch's own statistics, always or only in training."""

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
