"""The reference engine: a plain autograd loop over minibatches, a client a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

import torch

from fedlogit.engine.base import Engine
from fedlogit.engine.client import Client
from fedlogit.engine.one_sample import batch_norm_in
from fedlogit.engine.task import ClientTask, LossSum

__all__ = ["LoopEngine"]

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
        return self.pool.map(self._counted, tasks, ClientTask.cost)

    def _counted(self, task: ClientTask) -> float:
        loss = self.run(task)
        self.on_task()
        return loss

    def run(self, task: ClientTask) -> float:
        """Run one task, and return its mean loss over samples."""
        client, device = task.client, self.data.device
        client.model.train()
        losses = LossSum([task], device)
        with client.gradient(self._memory(client.vector)) as gradient:
            for positions, crops in zip(task.positions(device), task.crops(device), strict=True):
                self.pool.check()
                x = self.data.inputs(task.indices[positions], crops)
                gradient.zero_()
                with self.autocast(), batch_norm_in(client, task.phase):
                    loss = task.loss(self.logits(client, x), task.targets(positions))
                loss.backward()
                if task.prox_center is not None:  # the gradient of the proximal term
                    away = client.vector.detach() - task.prox_center
                    gradient.add_(away, alpha=task.proximal_mu)
                client.step()
                losses.add(loss.detach(), len(positions))
        return losses.means()[0]

    def _memory(self, vector: torch.Tensor) -> torch.Tensor:
        """Return memory for a gradient, which all clients that a thread trains have in turn."""
        known = getattr(self._of_thread, "memory", None)
        if known is None or len(known) < len(vector):
            known = self._of_thread.memory = torch.empty_like(vector, requires_grad=False)
        return known[: len(vector)]

    def predict(
        self, models: Sequence[Client], batches: Iterable[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Ask one model after another, or several side by side in threads."""
        for model in models:
            model.model.eval()
        passes = ((model, x) for x in batches for model in models)
        found = self.pool.stream(lambda one: self.forward(*one), passes, _AHEAD * self.pool.workers)
        while of_batch := list(islice(found, len(models))):
            yield torch.stack(of_batch)
