"""Models whose parameters and gradients are flat."""

import torch
from torch import nn

from fedlogit.engine.client import Client, attach_gradient, flatten


def flat_with_gradient(model: nn.Module) -> nn.Parameter:
    """Return a model's flat vector, with a gradient of zeros that backward passes add to."""
    vector = flatten(model)
    attach_gradient(model, vector, torch.zeros_like(vector, requires_grad=False))
    return vector


def after_step(client: Client, loss: torch.Tensor, rate: float = 0.1) -> torch.Tensor:
    """Return a client's vector after a step of plain SGD on a loss, which changes nothing yet."""
    gradients = torch.autograd.grad(loss, list(client.model.parameters()))
    return client.vector.detach() - rate * torch.cat([g.flatten() for g in gradients])
