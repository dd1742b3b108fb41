"""Second version of TallyTrain's transformer (appendix I): one block on sequences of tokens."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["TinyGPT"]


class TinyGPT(nn.Module):
    """No bias in linear layers, norms before attention and MLP, an output of its own."""

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
