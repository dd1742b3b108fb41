"""How many floating-point operations a repetition takes in products and convolutions, at least."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["operations"]


def operations(kind: str, fed: Any, orders: list[list[torch.Tensor]], sizes: dict) -> float:
    """Return the operations of a repetition.

    Args:
        kind: As of a workload.
        fed: Its federation, in a round.
        orders: Minibatches of private training, for each client.
        sizes: What else the settings say.
    """
    model = fed.clients[0].model
    samples = sum(len(batch) for order in orders for batch in order)
    x = fed.data.inputs(torch.arange(2))
    train, ask = _step(model, x), _forward(model, x)
    public, clients = len(fed.public), len(fed.clients)
    match kind:
        case "average":
            return samples * train
        case "distil":
            return samples * train + clients * public * (ask + train)
        case "vote":
            return samples * train + clients * sizes["probes"] * (ask + train)
        case "test":
            return clients * len(fed.data.x_test) * ask
        case _:
            return (clients + 1) * fed.classes * sizes["steps"] * _ascent(model, x)


def _forward(model: nn.Module, x: torch.Tensor) -> float:
    with torch.no_grad():
        return _counted(lambda: model(x)) / len(x)


def _step(model: nn.Module, x: torch.Tensor) -> float:
    """Return a training sample's: nobody needs the gradient of the first layer's inputs."""
    return _counted(lambda: model(x).sum().backward()) / len(x)


def _ascent(model: nn.Module, x: torch.Tensor) -> float:
    """Return an image's step: nobody needs the gradients of weights."""
    image, weights = x.clone().requires_grad_(), list(model.parameters())
    for p in weights:
        p.requires_grad_(False)
    found = _counted(lambda: model(image).sum().backward()) / len(x)
    for p in weights:
        p.requires_grad_()
    return found


def _counted(run: Any) -> float:
    with FlopCounterMode(display=False) as counter:
        run()
    return float(counter.get_total_flops())
