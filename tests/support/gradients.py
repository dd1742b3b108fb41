"""Models whose parameters and gradients are flat."""

import torch
from torch import nn

from fedlogit.engine.client import attach_gradient, flatten


def flat_with_gradient(model: nn.Module) -> nn.Parameter:
    """Return a model's flat vector, with a gradient of zeros that backward passes add to."""
    vector = flatten(model)
    attach_gradient(model, vector, torch.zeros_like(vector, requires_grad=False))
    return vector
