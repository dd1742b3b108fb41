"""Second version of Average (Who to Trust §3.1.1, eq. 1-2, in the loop of Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from oracles import rounding
from oracles.world import World, fit, tested, vector

Aggregate = Callable[..., tuple[torch.Tensor, dict[str, Any]]]


def mean(world: World, r: int, models: list, logits: torch.Tensor) -> tuple[torch.Tensor, dict]:
    """Return softmax of the mean of logits (clients, points, classes), and nothing to add."""
    return (sum(logits) / len(logits)).softmax(1), {}


def rounds(
    world: World,
    reset_every: str = "run",
    aggregate: Aggregate = mean,
    sent_as: tuple[object, ...] = (),
    temperature: float = 1.0,
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round.

    Args:
        world: The problem.
        reset_every: When the clients' optimizers are new: never after the ``run`` began, in every
            ``round``, or in every ``phase`` of one.
        aggregate: From round, models and public logits to targets and what else is to agree.
        sent_as: The format in which logits and targets are sent, if it is not float32.
        temperature: T of distillation from the mean of logits.
    """
    models = world.models()
    optimizers = [world.new_optimizer(model) for model in models]
    n, public = len(models), world.public
    r = 0
    while True:
        r += 1
        if reset_every != "run":
            optimizers = [world.new_optimizer(model) for model in models]
        for i, model in enumerate(models):
            mine = world.private[i]
            batches = world.batches("private", i, r, len(mine))
            fit(model, optimizers[i], world.x[mine], world.y[mine], batches)
        with torch.no_grad():
            logits = torch.stack([model(world.x[public]) for model in models])
        if sent_as:
            logits = torch.as_tensor(rounding.read(logits.numpy(), *sent_as)).float()
        targets, more = aggregate(world, r, models, logits)
        said = targets
        if sent_as:
            read = rounding.read(targets.numpy(), *sent_as)
            said = torch.as_tensor(read / read.sum(1, keepdims=True))
        if temperature != 1:
            said = (logits.mean(0) / temperature).softmax(1)
        if reset_every == "phase":
            optimizers = [world.new_optimizer(model) for model in models]
        losses = []
        for i, model in enumerate(models):
            batches = world.batches("distil", i, r, len(public))
            lesson = (world.x[public], said.float(), batches)
            losses.append(fit(model, optimizers[i], *lesson, temperature=temperature))
        each = 4 * len(public) * world.classes * n  # float32, both ways
        if sent_as:
            each = n * rounding.message_bytes(len(public), world.classes, *sent_as)
        yield {
            "clients": torch.cat([vector(model) for model in models]),
            "ensemble_accuracy": (targets.argmax(1) == world.y[public]).double().mean(),
            "loss_distil": sum(losses) / n,
            "bytes_up.logits": each,
            "bytes_up": each + sum(v for k, v in more.items() if k.startswith("bytes_up.")),
            "bytes_down": each,
            **tested(world, *models),
            **more,
        }
