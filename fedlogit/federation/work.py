"""A task: one client's minibatches in one stage of a round, and the loop that runs them.

This plain autograd loop is the reference; a faster path must agree with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from fedlogit.data import UNKNOWN
from fedlogit.data.transforms import draw_crops
from fedlogit.errors import Diverged
from fedlogit.federation.client import Client
from fedlogit.federation.device_data import DeviceData
from fedlogit.federation.executor import Executor

__all__ = ["LossSum", "Work", "checked_mean", "minibatches", "run_work"]


@dataclass(frozen=True)
class Work:
    """What a client trains on in a stage.

    Attributes:
        client: Who trains.
        points: Indices of the samples, int64 (n,).
        batches: Positions into `points`, one int64 tensor a minibatch.
        labels: True labels (n,) for the label term, or (n, T) where each position has one; None for
            none. The term is the mean over labels that are known.
        soft: Target distributions (n, classes), or (n, T, classes), for the soft term; None for
            none.
        label_weight: Weight of the cross-entropy with `labels`.
        soft_weight: Weight of the cross-entropy with `soft`: the gradient of KL(soft ‖ model).
        augment: Generator of crops and flips; None leaves images as they are.
        anchor: Where the parameters are pulled to, a flat vector; None for nowhere.
        pull: μ of the proximal term μ/2 ‖w - anchor‖² (FedProx).
        stage: Name of the stage, for messages.
    """

    client: Client
    points: torch.Tensor
    batches: list[torch.Tensor]
    labels: torch.Tensor | None = None
    soft: torch.Tensor | None = None
    label_weight: float = 1.0
    soft_weight: float = 1.0
    augment: torch.Generator | None = None
    anchor: torch.Tensor | None = None
    pull: float = 0.0
    stage: str = "private"

    def positions(self, device: torch.device) -> Sequence[torch.Tensor]:
        """Return `batches` on a device, moved at once: a copy a minibatch would wait each time."""
        if device.type == "cpu" or not self.batches:
            return self.batches
        return torch.cat(self.batches).to(device).split(self.sizes())

    def crops(self, device: torch.device) -> Sequence[torch.Tensor | None]:
        """Draw how each minibatch is augmented, in their order, and move it to a device at once."""
        if self.augment is None or not self.batches:
            return [None] * len(self.batches)
        drawn = [draw_crops(n, self.augment) for n in self.sizes()]
        return torch.cat(drawn, 1).to(device).split(self.sizes(), 1)

    def sizes(self) -> list[int]:
        """Return the number of samples of each minibatch."""
        return [len(batch) for batch in self.batches]

    def lesson(self, positions: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return what a minibatch is to learn: its ``labels``, its ``soft`` targets, or both."""
        given = {"labels": self.labels, "soft": self.soft}
        return {name: values[positions] for name, values in given.items() if values is not None}

    def loss(self, logits: torch.Tensor, lesson: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the mean loss over rows of logits: samples, or all positions of all samples.

        Args:
            logits: (n, classes), or (n, T, classes).
            lesson: What `lesson` returned for them.
        """
        loss, rows = logits.new_zeros(()), logits.flatten(0, -2)
        if "labels" in lesson:
            labels = lesson["labels"].flatten()
            loss = self.label_weight * F.cross_entropy(rows, labels, ignore_index=UNKNOWN)
        if "soft" in lesson:
            soft = lesson["soft"].flatten(0, -2)
            loss = loss + self.soft_weight * F.cross_entropy(rows, soft)
        return loss

    def cost(self) -> float:
        """Return samples to go through: what decides who runs first."""
        return sum(self.sizes()) * self.client.vector.numel() ** 0.5


def minibatches(
    n: int, batch: int, generator: torch.Generator, *, epochs: int | None, steps: int | None
) -> list[torch.Tensor]:
    """Return positions of each minibatch: permutations of ``range(n)``, cut into batches.

    Args:
        n: Number of samples.
        batch: Batch size; the last batch of an epoch may be smaller.
        generator: Source of the permutations; a function of (seed, client, round) only.
        epochs: Number of whole passes; or
        steps: number of minibatches, from as many passes as it takes.
    """
    if epochs is not None:
        orders = (torch.randperm(n, generator=generator) for _ in range(epochs))
        return [part for order in orders for part in _cut(order, batch)]
    if steps is None:
        raise ValueError("give epochs or steps")
    result: list[torch.Tensor] = []
    while len(result) < steps:
        result.extend(_cut(torch.randperm(n, generator=generator), batch))
    return result[:steps]


def _cut(order: torch.Tensor, batch: int) -> list[torch.Tensor]:
    """Cut into batches; a last one of a single sample joins the one before.

    Batch norm has no variance to estimate from one sample, and raises.
    """
    parts = list(order.split(batch))
    if len(parts) > 1 and len(parts[-1]) == 1 < batch:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


def run_work(work: Work, data: DeviceData, executor: Executor, precision: str) -> float:
    """Train, and return the mean loss over samples.

    Raises:
        Diverged: if the loss is no longer finite; with `Optimizer.scrub`, that of all minibatches.
    """
    client = work.client
    model, gradient = client.model, client.vector.grad
    assert gradient is not None
    model.train()
    losses = LossSum([work], data.device)
    batches = zip(work.positions(data.device), work.crops(data.device), strict=True)
    for positions, crops in batches:
        executor.check()
        x = data.inputs(work.points[positions], crops)
        gradient.zero_()
        with torch.autocast(data.device.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = work.loss(model(x).float(), work.lesson(positions))
        loss.backward()
        if work.anchor is not None:  # the gradient of the proximal term
            gradient.add_(client.vector.detach() - work.anchor, alpha=work.pull)
        client.step()
        losses.add(loss.detach(), len(positions))
    return losses.means()[0]


class LossSum:
    """Losses of clients in a stage, summed where they are: to read one would be to wait for it.

    Args:
        works: What the clients do; their settings are alike.
        device: Where their losses are.
    """

    def __init__(self, works: Sequence[Work], device: torch.device) -> None:
        self._works = works
        self._scrubs = works[0].client.scrubs
        self._totals = torch.zeros(len(works), device=device)
        self._wasted = torch.zeros(len(works), device=device)

    def add(
        self, losses: torch.Tensor, samples: int, at: slice | torch.Tensor = slice(None)
    ) -> None:
        """Add the mean loss of a minibatch of each client.

        Args:
            losses: (clients,), or () for a single client.
            samples: Of a minibatch.
            at: Which clients.
        """
        summed = losses * samples
        if self._scrubs:  # gradients were 0 where they were not finite: it taught nothing
            taught = losses.isfinite()
            summed = torch.where(taught, summed, 0.0)
            self._wasted[at] += ~taught * samples
        self._totals[at] += summed

    def means(self) -> list[float]:
        """Return each client's mean loss over the samples that taught something.

        Raises:
            Diverged: if one is not finite, or nothing taught it.
        """
        totals, wasted = torch.stack([self._totals, self._wasted]).tolist()
        found = zip(self._works, totals, wasted, strict=True)
        return [_mean(work, total, int(lost)) for work, total, lost in found]


def _mean(work: Work, total: float, wasted: int) -> float:
    seen = sum(work.sizes()) - wasted
    return checked_mean(total if seen else math.nan, seen, work)


def checked_mean(total: float, samples: int, work: Work) -> float:
    """Return the mean loss of a stage.

    Raises:
        Diverged: if it is not finite.
    """
    mean = total / max(samples, 1)
    if not math.isfinite(mean):
        raise Diverged(f"loss of {work.client.label} in {work.stage} is {mean}")
    return mean
