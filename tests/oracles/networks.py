"""Second versions of architectures, with their weights in the order of the flat vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from oracles.resnet11 import ResNet11
from oracles.tiny_gpt import TinyGPT
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
