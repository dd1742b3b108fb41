"""A stage of all clients in lock-step, by the setting ``kernel: stacked``.

The plain autograd loop is the reference. Here every step is one batched forward and backward pass
for all clients of an architecture (`torch.vmap` over their parameters), and one fused optimizer
step. On a GPU small models are bound by the launches of kernels, of which there are then as many
as for a single client. On a CPU it loses (see `fedlogit.federation.executor`), but runs.

Each client sees its own minibatches in the same order, with the same crops and flips. Batched
products round otherwise, so results agree with the reference within a tolerance, not to the bit;
that is why the setting is part of a run's spec.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

import torch
from torch.func import functional_call

from fedlogit.federation.client import Client, clean, together
from fedlogit.federation.device_data import DeviceData
from fedlogit.federation.executor import Executor
from fedlogit.federation.work import LossSum, Work

__all__ = ["a_few", "alike", "run_stacked", "stacked_logits", "stacked_outputs"]

Rows = tuple[int, ...]

_TOGETHER = 8  # models in a pass without gradients


def alike(keys: Iterable[Hashable]) -> list[list[int]]:
    """Return the positions of each key that occurs, in order of first occurrence."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        groups[key].append(i)
    return list(groups.values())


def run_stacked(
    works: Sequence[Work], data: DeviceData, executor: Executor, precision: str
) -> list[float]:
    """Train clients of one architecture, and return each one's mean loss over samples.

    Raises:
        Diverged: as `run_work` does, for the first client whose loss is no longer finite.
    """
    stage = _Stage(works, data, precision)
    for step in range(max(len(work.batches) for work in works)):
        executor.check()
        waiting = [i for i, work in enumerate(works) if step < len(work.batches)]
        # Batches of one size, so that nothing is padded: batch norm would see the padding.
        for group in alike(len(works[i].batches[step]) for i in waiting):
            stage.learn(tuple(waiting[i] for i in group), step)
    stage.stack.unload()
    return stage.losses.means()


def stacked_logits(
    clients: Sequence[Client], data: DeviceData, points: torch.Tensor, precision: str
) -> torch.Tensor:
    """Return what clients of one architecture say about the same training samples.

    Args:
        clients: Their models run in evaluation mode.
        data: The samples.
        points: Which of them, int64 (n,).
        precision: As `RunSpec.precision`.

    Returns:
        float32 (clients, n, classes), or (clients, n, T, classes).
    """
    answers = []
    for few in a_few(clients):
        batches = (data.inputs(part) for part in points.split(data.batch))
        answers.append(torch.cat(list(stacked_outputs(few, batches, precision)), 1))
    return torch.cat(answers)


def a_few(clients: Sequence[Client]) -> Iterator[Sequence[Client]]:
    """Yield clients, as many as one pass asks; more would take more memory than training."""
    for start in range(0, len(clients), _TOGETHER):
        yield clients[start : start + _TOGETHER]


def stacked_outputs(
    clients: Sequence[Client], batches: Iterable[torch.Tensor], precision: str
) -> Iterator[torch.Tensor]:
    """Yield what clients of one architecture say about the same inputs, batch after batch.

    Each batch is the one that a client alone would be asked: statistics of a batch that a model
    may normalise by do not depend on who else is asked.

    Args:
        clients: Their models run in evaluation mode.
        batches: Inputs, as of `DeviceData.test_inputs`.
        precision: As `RunSpec.precision`.

    Yields:
        float32 (clients, n, classes), or (clients, n, T, classes).
    """
    for client in clients:
        client.model.eval()
    stack = _Stack(clients, precision)
    everybody = tuple(range(len(clients)))
    for x in batches:
        with torch.no_grad():  # around no `yield`, which would leave it on for who asked
            outputs = stack.outputs(stack.vectors, everybody, x.expand(len(clients), *x.shape))
        yield outputs


class _Stack:
    """Parameters and buffers of several clients as the rows of shared tensors."""

    def __init__(self, clients: Sequence[Client], precision: str) -> None:
        self.clients = clients
        self.network = clients[0].model
        self.bf16 = precision == "bf16"
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

        with torch.autocast(vectors.device.type, torch.bfloat16, enabled=self.bf16):
            logits = torch.vmap(one)(weights, buffers, x).float()
        if self.network.training and isinstance(at, torch.Tensor):  # else they are views
            for name, values in buffers.items():
                self.buffers[name][at] = values
        return logits

    def step(self, rows: Rows, gradients: torch.Tensor) -> None:
        """Take one optimizer step for the clients in `rows`."""
        if rows not in self._optimizers:
            chosen = [self.rows[i] for i in rows]
            self._optimizers[rows] = together([self.clients[i] for i in rows], chosen)
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


class _Stage:
    """Several clients' works, and the losses so far.

    What a step looks up for each client by itself are as many launches as there are clients. So
    points and labels are looked up once, for the whole stage; a step only joins their minibatches.
    """

    def __init__(self, works: Sequence[Work], data: DeviceData, precision: str) -> None:
        self.works = works
        self.data = data
        self.stack = _Stack([work.client for work in works], precision)
        for work in works:
            work.client.model.train()
        self.losses = LossSum(works, data.device)
        self._batches = [work.positions(data.device) for work in works]
        self._crops = [work.crops(data.device) for work in works]
        self._points = self._looked_up([work.points for work in works])
        self._labels = self._looked_up([k for work in works if (k := work.labels) is not None])
        anchors = [a for work in works if (a := work.anchor) is not None]
        self._anchors = torch.stack(anchors) if anchors else None

    def _looked_up(self, values: Sequence[torch.Tensor]) -> list[Sequence[torch.Tensor]]:
        """Return, for each client, its values at each of its minibatches; [] if none has any."""
        if not values:
            return []
        found = zip(values, self._batches, self.works, strict=True)
        return [own[torch.cat(list(batches))].split(work.sizes()) for own, batches, work in found]

    def learn(self, rows: Rows, step: int) -> None:
        """Let the clients in `rows` learn from their minibatch number `step`."""
        work = self.works[rows[0]]  # all do the same, each on its own samples
        vectors = self.stack.vectors[self.stack.at(rows)].detach().requires_grad_()
        logits = self.stack.outputs(vectors, rows, self._inputs(rows, step))
        losses = torch.vmap(work.loss)(logits, self._lesson(rows, step))
        (gradients,) = torch.autograd.grad(losses.sum(), [vectors])
        if self._anchors is not None:  # the gradient of the proximal term
            away = vectors.detach() - self._anchors[self.stack.at(rows)]
            gradients.add_(away, alpha=work.pull)
        clean(gradients, work.client.settings)
        self.stack.step(rows, gradients)
        self.losses.add(losses.detach(), len(self._batches[rows[0]][step]), self.stack.at(rows))

    def _inputs(self, rows: Rows, step: int) -> torch.Tensor:
        """Return the samples of all clients in one call; a stage augments all of them or none."""
        drawn = [crops for i in rows if (crops := self._crops[i][step]) is not None]
        crops = torch.cat(drawn, 1) if drawn else None
        points = torch.cat([self._points[i][step] for i in rows])
        return self.data.inputs(points, crops).unflatten(0, (len(rows), -1))

    def _lesson(self, rows: Rows, step: int) -> dict[str, torch.Tensor]:
        """Return what `Work.lesson` does, of all clients: (clients, n, …)."""
        lesson = {}
        if self._labels:
            lesson["labels"] = torch.stack([self._labels[i][step] for i in rows])
        if (soft := self._soft(rows, step)) is not None:
            lesson["soft"] = soft
        return lesson

    def _soft(self, rows: Rows, step: int) -> torch.Tensor | None:
        """Return soft targets, which are too large to look up for a whole stage."""
        shared, batches = self.works[rows[0]].soft, [self._batches[i][step] for i in rows]
        if shared is None:
            return None
        if all(self.works[i].soft is shared for i in rows):
            return shared[torch.cat(batches)].unflatten(0, (len(rows), -1))
        own = [soft for i in rows if (soft := self.works[i].soft) is not None]
        return torch.stack([soft[batch] for soft, batch in zip(own, batches, strict=True)])
