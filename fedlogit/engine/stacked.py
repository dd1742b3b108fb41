"""All clients of an architecture in lock-step: one batched pass a step, for small models on a GPU.

Every step is one batched forward and backward pass for all clients of an architecture
(`torch.vmap` over their parameters), and one fused optimizer step. On a GPU small models are bound
by the launches of kernels, of which there are then as many as for a single client. On a CPU it
loses to a model a thread, but runs.

Each client sees its own minibatches in the same order, with the same crops and flips. Batched
products round otherwise, so results agree with the loop within a tolerance, not to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import torch
from torch.func import functional_call

from fedlogit.engine.base import Engine
from fedlogit.engine.client import Client, clean_gradients, joint_optimizer
from fedlogit.engine.device_data import DeviceData
from fedlogit.engine.grouping import chunks, group_by
from fedlogit.engine.loop import LoopEngine
from fedlogit.engine.one_sample import explain_single_sample
from fedlogit.engine.task import ClientTask, LossSum

__all__ = ["StackedEngine"]

Rows = tuple[int, ...]

_MODELS_IN_A_PASS = 8  # without gradients; more would take more memory than training does


class StackedEngine(LoopEngine):
    """Trains, and predicts with, the models of one architecture together; one alone as the loop."""

    name: ClassVar[str] = "stacked"

    def train(self, tasks: Sequence[ClientTask]) -> list[float]:
        """Run the tasks of each architecture together."""
        losses = [0.0] * len(tasks)
        for rows in group_by(task.client.architecture for task in tasks):
            alike = [tasks[i] for i in rows]
            found = self._together(alike) if len(alike) > 1 else super().train(alike)
            for i, loss in zip(rows, found, strict=True):
                losses[i] = loss
        return losses

    def _together(self, tasks: Sequence[ClientTask]) -> list[float]:
        """Run tasks of one architecture, and return each one's mean loss."""
        phase = _Phase(tasks, self.data, self)
        for step in range(max(len(task.batches) for task in tasks)):
            self.pool.check()
            waiting = [i for i, task in enumerate(tasks) if step < len(task.batches)]
            # Batches of one size, so that nothing is padded: batch norm would see the padding.
            for group in group_by(len(tasks[i].batches[step]) for i in waiting):
                phase.learn(tuple(waiting[i] for i in group), step)
        phase.stack.unload()
        losses = phase.losses.means()
        for task, loss in zip(tasks, losses, strict=True):
            self.on_task(task, loss)
        return losses

    def predict(
        self, models: Sequence[Client], batches: Iterable[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Predict with a few models of one architecture in one pass.

        Each batch is that of a model alone: statistics of a batch that a model may normalise by do
        not depend on the other models.
        """
        for model in models:
            model.model.eval()
        alike = group_by(model.architecture for model in models)
        groups = [few for rows in alike for few in chunks(rows, _MODELS_IN_A_PASS)]
        stacks = [_Stack([models[i] for i in few], self) for few in groups]
        order = torch.tensor([i for few in groups for i in few]).argsort()
        for x in batches:
            self.pool.check()
            with torch.no_grad():  # around no `yield`, which would leave it on for the caller
                outputs = torch.cat([stack.all_outputs(x) for stack in stacks])
            yield outputs[order.to(outputs.device)]

    @property
    def trains_together(self) -> bool:
        """Yes: how a batched product rounds may depend on how many models are in it."""
        return True

    def prediction_batch(self, models: Sequence[Client]) -> int:
        """Return the CPU's: a pass has several models already."""
        return self.data.batch


class _Stack:
    """Parameters and buffers of several clients as the rows of shared tensors."""

    def __init__(self, clients: Sequence[Client], engine: Engine) -> None:
        self.clients = clients
        self.network = clients[0].model
        self.autocast = engine.autocast
        self.vectors = torch.stack([client.vector.detach() for client in clients])
        self.rows = list(self.vectors)  # views, which an optimizer can step
        places = clients[0].layers()
        self.layers = {k: (places[k], p.shape) for k, p in self.network.named_parameters()}
        named = [dict(client.model.named_buffers()) for client in clients]
        self.buffers = {name: torch.stack([b[name] for b in named]) for name in named[0]}
        self._optimizers: dict[Rows, torch.optim.Optimizer] = {}
        self._places: dict[Rows, torch.Tensor] = {}

    def at(self, rows: Rows) -> torch.Tensor | slice:
        """Return what to index with for some clients; it is moved to the device only once."""
        if len(rows) == len(self.clients):
            return slice(None)
        if rows not in self._places:
            self._places[rows] = torch.tensor(rows, device=self.vectors.device)
        return self._places[rows]

    def outputs(self, vectors: torch.Tensor, rows: Rows, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of the clients in `rows`, each on its own samples.

        Args:
            vectors: Their parameters, (k, parameters).
            rows: Which clients; the statistics of their batch norms follow what they see.
            x: (k, n, …).
        """
        weights = {
            name: vectors[:, place].unflatten(1, shape)
            for name, (place, shape) in self.layers.items()
        }
        at = self.at(rows)
        buffers = {name: values[at] for name, values in self.buffers.items()}

        def one(weights: dict, buffers: dict, x: torch.Tensor) -> torch.Tensor:
            return functional_call(self.network, (weights, buffers), (x,))

        with self.autocast():
            logits = torch.vmap(one)(weights, buffers, x).float()
        if self.network.training and isinstance(at, torch.Tensor):  # else they are views
            for name, values in buffers.items():
                self.buffers[name][at] = values
        return logits

    def all_outputs(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of all clients on the same samples, (clients, n, …)."""
        with explain_single_sample(self.clients[0], "prediction"):
            if len(self.clients) == 1:
                with self.autocast():
                    return self.network(x).float()[None]
            everybody = tuple(range(len(self.clients)))
            return self.outputs(self.vectors, everybody, x.expand(len(self.clients), *x.shape))

    def step(self, rows: Rows, gradients: torch.Tensor) -> None:
        """Take one optimizer step for the clients in `rows`."""
        if rows not in self._optimizers:
            chosen = [self.rows[i] for i in rows]
            self._optimizers[rows] = joint_optimizer([self.clients[i] for i in rows], chosen)
        for i, gradient in zip(rows, gradients, strict=True):
            self.rows[i].grad = gradient
        self._optimizers[rows].step()

    def unload(self) -> None:
        """Give every client what it has learnt."""
        with torch.no_grad():
            for i, client in enumerate(self.clients):
                client.vector.copy_(self.vectors[i])
                for name, buffer in client.model.named_buffers():
                    buffer.copy_(self.buffers[name][i])


class _Phase:
    """Several clients' tasks, and the losses so far.

    What a step looks up for each client by itself are as many launches as there are clients. So
    indices and labels are looked up once, for the whole phase; a step only joins their minibatches.
    """

    def __init__(self, tasks: Sequence[ClientTask], data: DeviceData, engine: Engine) -> None:
        self.tasks = tasks
        self.data = data
        self.stack = _Stack([task.client for task in tasks], engine)
        for task in tasks:
            task.client.model.train()
        self.losses = LossSum(tasks, data.device)
        self._batches = [task.positions(data.device) for task in tasks]
        self._crops = [task.crops(data.device) for task in tasks]
        self._indices = self._looked_up([task.indices for task in tasks])
        self._labels = self._looked_up([k for task in tasks if (k := task.labels) is not None])
        centers = [a for task in tasks if (a := task.prox_center) is not None]
        self._prox_centers = torch.stack(centers) if centers else None

    def _looked_up(self, values: Sequence[torch.Tensor]) -> list[Sequence[torch.Tensor]]:
        """Return, for each client, its values at each of its minibatches; [] if none has any."""
        if not values:
            return []
        found = zip(values, self._batches, self.tasks, strict=True)
        return [own[torch.cat(list(batches))].split(task.sizes()) for own, batches, task in found]

    def learn(self, rows: Rows, step: int) -> None:
        """Let the clients in `rows` learn from their minibatch number `step`."""
        # All do the same, each on its own samples; only of some may labels be unknown.
        task = max((self.tasks[i] for i in rows), key=lambda task: task.partly_known)
        vectors = self.stack.vectors[self.stack.at(rows)].detach().requires_grad_()
        inputs = self._inputs(rows, step)
        with explain_single_sample(task.client, task.phase):
            logits = self.stack.outputs(vectors, rows, inputs)
        losses = torch.vmap(task.loss)(logits, self._targets(rows, step))
        (gradients,) = torch.autograd.grad(losses.sum(), [vectors])
        if self._prox_centers is not None:  # the gradient of the proximal term
            away = vectors.detach() - self._prox_centers[self.stack.at(rows)]
            gradients.add_(away, alpha=task.proximal_mu)
        clean_gradients(gradients, task.client.settings)
        self.stack.step(rows, gradients)
        self.losses.add(losses.detach(), len(self._batches[rows[0]][step]), self.stack.at(rows))

    def _inputs(self, rows: Rows, step: int) -> torch.Tensor:
        """Return the samples of all clients in one call; a phase augments all of them or none."""
        drawn = [crops for i in rows if (crops := self._crops[i][step]) is not None]
        crops = torch.cat(drawn, 1) if drawn else None
        indices = torch.cat([self._indices[i][step] for i in rows])
        return self.data.inputs(indices, crops).unflatten(0, (len(rows), -1))

    def _targets(self, rows: Rows, step: int) -> dict[str, torch.Tensor]:
        """Return what `ClientTask.targets` does, of all clients: (clients, n, …)."""
        targets = {}
        if self._labels:
            targets["labels"] = torch.stack([self._labels[i][step] for i in rows])
        if (soft := self._soft(rows, step)) is not None:
            targets["soft"] = soft
        return targets

    def _soft(self, rows: Rows, step: int) -> torch.Tensor | None:
        """Return soft targets, which are too large to look up for a whole phase."""
        shared, batches = self.tasks[rows[0]].soft, [self._batches[i][step] for i in rows]
        if shared is None:
            return None
        if all(self.tasks[i].soft is shared for i in rows):
            return shared[torch.cat(batches)].unflatten(0, (len(rows), -1))
        own = [soft for i in rows if (soft := self.tasks[i].soft) is not None]
        return torch.stack([soft[batch] for soft, batch in zip(own, batches, strict=True)])
