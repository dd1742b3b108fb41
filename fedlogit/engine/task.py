"""A task: what one client trains on in one phase of a round, and for how many minibatches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from fedlogit.data import UNKNOWN
from fedlogit.engine.client import Client
from fedlogit.engine.transforms import draw_crops
from fedlogit.errors import Diverged

__all__ = ["ClientTask", "LossSum", "checked_mean", "minibatches", "split_batches"]


@dataclass(frozen=True)
class ClientTask:
    """What a client trains on in a phase.

    Attributes:
        client: Who trains.
        indices: Indices of the samples, int64 (n,).
        batches: Positions into `indices`, one int64 tensor a minibatch.
        labels: True labels (n,) for the label term, or (n, T) where each position has one; None for
            none. The term is the mean over labels that are known.
        partly_known: Some labels are known and others not, so a minibatch may have none that is;
            its label term is 0. Where no label is known, the loss is no number.
        soft: Target distributions (n, classes), or (n, T, classes), for the soft term; None for
            none.
        label_weight: Weight of the cross-entropy with `labels`.
        temperature: T of the soft term, T² times the cross-entropy of `soft` with softmax(f / T);
            `soft` has been softened by it before.
        augment: Generator of crops and flips; None leaves images as they are.
        prox_center: w_0 of the proximal term μ/2 ‖w - w_0‖² (FedProx), a flat vector; None for no
            such term.
        proximal_mu: Its μ.
        phase: What the client does, for messages.
    """

    client: Client
    indices: torch.Tensor
    batches: list[torch.Tensor]
    labels: torch.Tensor | None = None
    partly_known: bool = False
    soft: torch.Tensor | None = None
    label_weight: float = 1.0
    temperature: float = 1.0
    augment: torch.Generator | None = None
    prox_center: torch.Tensor | None = None
    proximal_mu: float = 0.0
    phase: str = "private training"

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

    def targets(self, positions: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return what a minibatch is to learn: its ``labels``, its ``soft`` targets, or both."""
        given = {"labels": self.labels, "soft": self.soft}
        return {name: values[positions] for name, values in given.items() if values is not None}

    def numbers_a_sample(self) -> int:
        """Return the numbers in a sample's labels, or in its soft targets if there are more."""
        given = (values for values in (self.labels, self.soft) if values is not None)
        return max((math.prod(values.shape[1:]) for values in given), default=0)

    def loss(self, logits: torch.Tensor, targets: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the mean loss over rows of logits: samples, or all positions of all samples.

        Args:
            logits: (n, classes), or (n, T, classes).
            targets: What `targets` returned for them.
        """
        loss, rows = logits.new_zeros(()), logits.flatten(0, -2)
        if "labels" in targets:
            labels = targets["labels"].flatten()
            loss = F.cross_entropy(rows, labels, ignore_index=UNKNOWN)
            if self.partly_known:  # decided before, as to look at a GPU's labels is to wait for it
                loss = torch.where((labels != UNKNOWN).any(), loss, 0.0)
            loss = self.label_weight * loss
        if "soft" in targets:
            soft = targets["soft"].flatten(0, -2)
            softened = F.cross_entropy(rows / self.temperature, soft)
            loss = loss + self.temperature**2 * softened
        return loss

    def cost(self) -> float:
        """Return a rough relative duration, for the order of tasks: samples times √parameters."""
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
        return [part for order in orders for part in split_batches(order, batch)]
    if steps is None:
        raise ValueError("give epochs or steps")
    result: list[torch.Tensor] = []
    while len(result) < steps:
        result.extend(split_batches(torch.randperm(n, generator=generator), batch))
    return result[:steps]


def split_batches(order: torch.Tensor, batch: int) -> list[torch.Tensor]:
    """Cut samples, (n,), into batches; a last one of a single sample joins the one before.

    Batch norm has no variance to estimate from one sample, and raises.
    """
    parts = list(order.split(batch))
    if len(parts) > 1 and len(parts[-1]) == 1 < batch:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


class LossSum:
    """Losses of clients in a phase, summed where they are: to read one would be to wait for it.

    Args:
        tasks: What the clients do; their settings are alike.
        device: Where their losses are.
    """

    def __init__(self, tasks: Sequence[ClientTask], device: torch.device) -> None:
        self._tasks = tasks
        self._zeroes_nonfinite = tasks[0].client.settings.zero_nonfinite_grads
        self._totals = torch.zeros(len(tasks), device=device)
        self._skipped = torch.zeros(len(tasks), device=device)

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
        if self._zeroes_nonfinite:  # gradients were set to 0: nothing was learnt from it
            finite = losses.isfinite()
            summed = torch.where(finite, summed, 0.0)
            self._skipped[at] += ~finite * samples
        self._totals[at] += summed

    def means(self) -> list[float]:
        """Return each client's mean loss over the samples that had a finite one.

        Raises:
            Diverged: if one is not finite, or no sample had one.
        """
        totals, skipped = torch.stack([self._totals, self._skipped]).tolist()
        trained = [sum(task.sizes()) for task in self._tasks]
        seen = [samples - int(lost) for samples, lost in zip(trained, skipped, strict=True)]
        return list(map(checked_mean, totals, seen, self._tasks))


def checked_mean(total: float, samples: int, task: ClientTask) -> float:
    """Return the mean loss of a phase.

    Raises:
        Diverged: if it is not finite, or no sample had one.
    """
    mean = total / samples if samples else math.nan
    if not math.isfinite(mean):
        raise Diverged(f"loss of {task.client.label} in {task.phase} is {mean}")
    return mean
