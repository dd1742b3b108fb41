"""Public samples: which ones a round uses, and how often predictions on them are right."""

from __future__ import annotations

import numpy as np
import torch

from fedlogit.data import UNKNOWN
from fedlogit.errors import FedlogitError

__all__ = ["accuracy", "draw_probes"]


def draw_probes(
    public: torch.Tensor,
    labels: torch.Tensor,
    size: int,
    anchors: int,
    generator: np.random.Generator,
) -> torch.Tensor:
    """Return some public samples, int64 (size,); see `Federation.probes`.

    Args:
        public: All of them, int64 (points,).
        labels: Theirs, int64 (points,) or (points, T).
        size: How many to draw.
        anchors: How many of them shall have labels; 0 draws from all alike.
        generator: Draws them.

    Raises:
        FedlogitError: if there are fewer.
    """
    if not anchors:
        return _draw(public, size, generator)
    known = labels != UNKNOWN
    first = _draw(public[known], anchors, generator)
    return torch.cat([first, _draw(public[~known], size - anchors, generator)])


def _draw(pool: torch.Tensor, size: int, generator: np.random.Generator) -> torch.Tensor:
    if size > len(pool):
        raise FedlogitError(
            f"{size} public samples are asked for as probes where there are {len(pool)}; ask for"
            " less, or give a larger public.size"
        )
    chosen = generator.choice(len(pool), size, replace=False)
    return pool[torch.as_tensor(chosen, device=pool.device)]


def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return how often the largest logit is the true class: (..., n, classes) -> (...).

    Samples whose label nobody knows do not count; NaN if there are no others.
    """
    return (logits.argmax(-1) == labels)[..., labels != UNKNOWN].double().mean(-1)
