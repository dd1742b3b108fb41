"""Passes as CUDA graphs: on a GPU, all kernels of a minibatch are launched at once.

Small models, and deep ones on small minibatches, wait for the launches of kernels: a forward and
backward pass has dozens to hundreds, each of which takes Python and PyTorch longer to launch than
the GPU to run. The first minibatch of a client that has a certain shape runs as in the loop, which
chooses algorithms; the second is recorded, with whatever follows replayed.

What is replayed are the loop's own kernels in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import torch

from fedlogit.engine.base import Workload
from fedlogit.engine.client import Client
from fedlogit.engine.loop import LoopEngine
from fedlogit.engine.task import ClientTask
from fedlogit.errors import FedlogitError

__all__ = ["GraphedEngine"]

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class _Pass:
    """A recorded pass, and the memory that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    inputs: Tensors
    output: torch.Tensor

    def replay(self, given: Tensors) -> torch.Tensor:
        for name, tensor in given.items():
            self.inputs[name].copy_(tensor)
        self.graph.replay()
        return self.output


class GraphedEngine(LoopEngine):
    """Replays passes that it has recorded, a client after another; all else is the loop's."""

    name: ClassVar[str] = "graphed"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make an engine for a run; see `Engine`."""
        super().__init__(*args, **kwargs)
        self._passes: WeakKeyDictionary[Client, dict[Hashable, _Pass | None]]
        self._passes = WeakKeyDictionary()
        self._stream = torch.cuda.Stream(self.data.device)
        self._memory_of_passes = torch.cuda.graph_pool_handle()  # one: they run one after another

    @classmethod
    def unsupported(cls, workload: Workload) -> str | None:
        """Return what a workload would have to be like, or None if it can be run as it is."""
        return None if workload.device == "cuda" else "device = 'cuda'"

    def train(self, tasks: Sequence[ClientTask]) -> list[float]:
        """Run one task after another: what is recorded must not meet another thread's kernels."""
        return [self._counted(task) for task in tasks]

    def _pass(
        self, task: ClientTask, gradient: torch.Tensor, x: torch.Tensor, targets: Tensors
    ) -> torch.Tensor:
        def run(given: Tensors) -> torch.Tensor:
            wanted = {name: given[name] for name in targets}
            return super(GraphedEngine, self)._pass(task, gradient, given["x"], wanted)

        what = ("training", task.label_weight, gradient.data_ptr())
        return self._recorded(task.client, what, {"x": x, **targets}, run)

    def forward(self, model: Client, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of one batch without gradients; the model's mode is the caller's."""
        self.pool.check()

        def run(given: Tensors) -> torch.Tensor:
            return super(GraphedEngine, self).forward(model, given["x"])

        return self._recorded(model, ("asking", model.model.training), {"x": x}, run).clone()

    def _recorded(
        self,
        client: Client,
        what: Hashable,
        given: Tensors,
        run: Callable[[Tensors], torch.Tensor],
    ) -> torch.Tensor:
        """Return what a pass returns; it is overwritten by the next one of the same kind."""
        shapes = tuple((name, t.shape, t.dtype) for name, t in given.items())
        known, key = self._passes.setdefault(client, {}), (what, shapes)
        if key not in known:
            known[key] = None
            return run(given)
        found = known[key]
        if found is None:
            found = known[key] = self._record(client, given, run)
        return found.replay(given)

    def _record(
        self, client: Client, given: Tensors, run: Callable[[Tensors], torch.Tensor]
    ) -> _Pass:
        """Record a pass; nothing runs.

        Raises:
            FedlogitError: if the model does what cannot be recorded, such as reading a number.
        """
        inputs = {name: tensor.clone() for name, tensor in given.items()}
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._memory_of_passes, stream=self._stream):
                output = run(inputs)
        except RuntimeError as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            why = str(error).partition("\n")[0]
            raise FedlogitError(
                f"engine = 'graphed' cannot record a pass of {client.label} as a CUDA graph ({why});"
                " a model must not wait for the GPU, such as by .item(); use engine = 'loop'"
            ) from error
        return _Pass(graph, inputs, output)
