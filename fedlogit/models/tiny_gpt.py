"""TinyGPT, the peers of TallyTrain on WikiText-2 (§4.6, appendix I)."""

from __future__ import annotations

import math
from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import nn

from fedlogit.errors import FedlogitError
from fedlogit.models.base import ModelConfig, Shape

__all__ = ["TinyGPT"]


class TinyGPT(ModelConfig):
    """A causal transformer; 5,839,360 parameters for 2,048 tokens, the number that is published.

    The paper gives layers, width, heads, the factor of the MLP, the context, and that input and
    output tables are not tied. Its number of parameters, which the bytes of a merge are made of,
    needs linear layers without bias, layer norms with scale and shift (also a last one), and a
    learnt table of positions. What it leaves open: norms come before attention and MLP, the
    activation is GELU, there is no dropout.

    Attributes:
        layers: Blocks of attention and MLP.
        width: d, the size of a token's vector; a multiple of `heads`.
        heads: Attention heads.
        expansion: Width of the MLP, in units of d.
        context: Positions that the model has vectors for: the longest sequence.
    """

    name = "tiny_gpt"

    layers: Annotated[int, Field(gt=0)] = 6
    width: Annotated[int, Field(gt=0)] = 256
    heads: Annotated[int, Field(gt=0)] = 8
    expansion: Annotated[int, Field(gt=0)] = 4
    context: Annotated[int, Field(gt=0)] = 256

    def network(self, shape: Shape, classes: int) -> nn.Module:
        """Return the network."""
        return _GPT(self, classes)

    def check(self, shape: Shape) -> None:
        """Refuse images, sequences beyond the context, and heads that do not divide the width."""
        if self.width % self.heads:
            raise FedlogitError(
                f"model tiny_gpt: width = {self.width}: not a multiple of heads = {self.heads}"
            )
        if len(shape) != 1:
            raise FedlogitError(
                f"model tiny_gpt takes sequences of tokens, not images of shape {tuple(shape)}"
            )
        if shape[0] > self.context:
            raise FedlogitError(
                f"model tiny_gpt: context = {self.context}: sequences have {shape[0]} tokens"
                " (text.length)"
            )


class _GPT(nn.Module):
    head = "output"

    def __init__(self, sizes: TinyGPT, classes: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(classes, sizes.width)
        self.positions = nn.Embedding(sizes.context, sizes.width)
        self.blocks = nn.Sequential(*(_Block(sizes) for _ in range(sizes.layers)))
        self.norm = nn.LayerNorm(sizes.width)
        self.output = nn.Linear(sizes.width, classes, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits of the next token at each position: (n, T) to (n, T, classes)."""
        vectors = self.tokens(x) + self.positions.weight[: x.shape[1]]
        return self.output(self.norm(self.blocks(vectors)))


class _Block(nn.Module):
    def __init__(self, sizes: TinyGPT) -> None:
        super().__init__()
        width = sizes.width
        self.heads = sizes.heads
        self.norm1 = nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.project = nn.Linear(width, width, bias=False)
        self.norm2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, sizes.expansion * width, bias=False)
        self.narrow = nn.Linear(sizes.expansion * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.project(self._attention(self.mix(self.norm1(x))))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x))))

    def _attention(self, mixed: torch.Tensor) -> torch.Tensor:
        """Attend to positions up to one's own: (n, T, 3 d) to (n, T, d).

        Written out: PyTorch's fused attention takes eight times as long on a CPU for sequences of
        64 tokens, and on a GPU its gradient need not have the same bits twice.
        """
        n, length, _ = mixed.shape
        q, k, v = mixed.view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        later = torch.ones(length, length, dtype=torch.bool, device=mixed.device).triu(1)
        seen = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        return seen.transpose(1, 2).reshape(n, length, -1)
