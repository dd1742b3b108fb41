"""Networks with first weights of a seed, and images to put in."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from fedlogit.models import build


def network(call: str, shape: Sequence[int], classes: int = 10, seed: int = 0) -> nn.Module:
    """Return what a call means for samples of a shape, with the seed's first weights."""
    return build(call, tuple(shape), classes, torch.Generator().manual_seed(seed))


def images(shape: Sequence[int], n: int = 4, seed: int = 1) -> torch.Tensor:
    """Return `n` images of normal noise, (n, *shape)."""
    return torch.randn(n, *shape, generator=torch.Generator().manual_seed(seed))
