"""The reference engine: a plain autograd loop over minibatches, a client a thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

import torch

from fedlogit.engine.base import Engine
from fedlogit.engine.client import Client
from fedlogit.engine.one_sample import explain_single_sample
from fedlogit.engine.task import ClientTask, LossSum

__all__ = ["LoopEngine"]

_READY = 1 << 24  # numbers of inputs, or targets, made ready at once on a GPU: 64 MiB of float32
_AHEAD = 5  # forward passes that each worker has before their results are asked for


class LoopEngine(Engine):
    """Does every task by itself; it runs everything, and the others must agree with it."""

    name: ClassVar[str] = "loop"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make an engine for a run; see `Engine`."""
        super().__init__(*args, **kwargs)
        self._of_thread = threading.local()

    def train(self, tasks: Sequence[ClientTask]) -> list[float]:
        """Run each task on a worker, the costliest first."""
        return self.pool.map(self._run_and_report, tasks, ClientTask.cost)

    def _run_and_report(self, task: ClientTask) -> float:
        loss = self.run(task)
        self.on_task(task, loss)
        return loss

    def run(self, task: ClientTask) -> float:
        """Run one task, and return its mean loss over samples."""
        client, device = task.client, self.data.device
        client.model.train()
        losses = LossSum([task], device)
        with client.gradient(self._memory(client.vector)) as gradient:
            for x, targets in self._minibatches(task):
                self.pool.check()
                loss = self._pass(task, gradient, x, targets)
                if task.prox_center is not None:  # the gradient of the proximal term
                    away = client.vector.detach() - task.prox_center
                    gradient.add_(away, alpha=task.proximal_mu)
                client.step()
                losses.add(loss, len(x))
        return losses.means()[0]

    def _pass(
        self,
        task: ClientTask,
        gradient: torch.Tensor,
        x: torch.Tensor,
        targets: dict[str, torch.Tensor],
    ) -> torch.Tensor:
        """Leave the gradient of a minibatch's mean loss in `gradient`; return the loss, ()."""
        gradient.zero_()
        with self.autocast(), explain_single_sample(task.client, task.phase):
            loss = task.loss(self.logits(task.client, x), targets)
        loss.backward()
        return loss.detach()

    def _minibatches(
        self, task: ClientTask
    ) -> Iterator[tuple[torch.Tensor, dict[str, torch.Tensor]]]:
        """Yield each minibatch's inputs and targets.

        On a GPU many are looked up, cropped and normalised at once: for one minibatch these are a
        dozen kernels, as many as a small model's forward pass.
        """
        device, sizes, few = self.data.device, task.sizes(), 1
        if device.type == "cuda" and sizes:
            numbers = max(math.prod(self.data.shape), task.numbers_a_sample())
            few = max(1, _READY // (max(sizes) * numbers))
        drawn = zip(task.positions(device), task.crops(device), sizes, strict=True)
        while group := list(islice(drawn, few)):
            positions, crops, lengths = zip(*group, strict=True)
            index, joined = _joined(positions), None if crops[0] is None else _joined(crops, 1)
            x = self.data.inputs(task.indices[index], joined).split(lengths)
            targets = {k: values.split(lengths) for k, values in task.targets(index).items()}
            for i, one in enumerate(x):
                yield one, {k: values[i] for k, values in targets.items()}

    def _memory(self, vector: torch.Tensor) -> torch.Tensor:
        """Return memory for a gradient, which all clients that a thread trains have in turn."""
        known = getattr(self._of_thread, "memory", None)
        if known is None or len(known) < len(vector):
            known = self._of_thread.memory = torch.empty_like(vector, requires_grad=False)
        return known[: len(vector)]

    def predict(
        self, models: Sequence[Client], batches: Iterable[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Predict with one model after another, or with several side by side in threads."""
        for model in models:
            model.model.eval()
        passes = ((model, x) for x in batches for model in models)
        found = self.pool.stream(lambda one: self.forward(*one), passes, _AHEAD * self.pool.workers)
        while of_batch := list(islice(found, len(models))):
            yield torch.stack(of_batch)


def _joined(parts: tuple[torch.Tensor, ...], dim: int = 0) -> torch.Tensor:
    """Join tensors; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)
