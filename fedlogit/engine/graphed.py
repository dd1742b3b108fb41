"""Passes as CUDA graphs: on a GPU, all kernels of a minibatch are launched at once.

Small models, and deep ones on small minibatches, wait for the launches of kernels: a pass has
dozens to hundreds, and each takes Python and PyTorch longer to launch than the GPU to run. A
client's first minibatch of a shape runs as in the loop; the second is recorded, and replayed from
then on. What is replayed are the loop's own kernels in their order: results are equal to the bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
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
Pass = Callable[[Tensors], torch.Tensor]


_KEPT = 16  # recordings of a client; a method whose numbers change by round has more and more


class GraphedEngine(LoopEngine):
    """Replays passes that it has recorded; all else is the loop's.

    Nothing else may use the GPU while a pass is recorded: a run has a single worker there.
    """

    name: ClassVar[str] = "graphed"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make an engine for a run; see `Engine`."""
        super().__init__(*args, **kwargs)
        self._recorder = Recorder(self.data.device)
        self._passes: WeakKeyDictionary[Client, dict[Hashable, Recording | None]]
        self._passes = WeakKeyDictionary()

    @classmethod
    def unsupported(cls, workload: Workload) -> str | None:
        """Return what a workload would have to be like, or None if it can be run as it is."""
        return None if workload.device == "cuda" else "device = 'cuda'"

    @classmethod
    def is_fastest(cls, workload: Workload) -> bool:
        """For every model of ours; others may do what cannot be recorded."""
        return ":" not in workload.model

    def _pass(
        self, task: ClientTask, gradient: torch.Tensor, x: torch.Tensor, targets: Tensors
    ) -> torch.Tensor:
        def run(given: Tensors) -> torch.Tensor:
            wanted = {name: given[name] for name in targets}
            return super(GraphedEngine, self)._pass(task, gradient, given["x"], wanted)

        # A recording knows where the gradient lay, and numbers that Python computed with.
        numbers = task.label_weight, task.partly_known, task.temperature
        kind = ("training", *numbers, gradient.data_ptr())
        return self._recorded(task.client, kind, {"x": x, **targets}, run)

    def forward(self, model: Client, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of one batch without gradients; the model's mode is the caller's."""
        self.pool.check()

        def run(given: Tensors) -> torch.Tensor:
            return super(GraphedEngine, self).forward(model, given["x"])

        return self._recorded(model, ("prediction", model.model.training), {"x": x}, run).clone()

    def _recorded(self, client: Client, kind: Hashable, given: Tensors, run: Pass) -> torch.Tensor:
        """Return what a pass returns; a client's next pass of that kind may overwrite it."""
        shapes = tuple((name, values.shape, values.dtype) for name, values in given.items())
        known, key = self._passes.setdefault(client, {}), (kind, shapes)
        if key not in known:  # algorithms are chosen and memory is taken now, not in a recording
            if len(known) == _KEPT:
                del known[next(iter(known))]  # which has not been used for longest
            known[key] = None
            return run(given)
        found = known.pop(key) or self._recorder.record(given, run, client.label)
        known[key] = found  # behind the others
        return found.replay(given)


@dataclass(frozen=True, eq=False)
class Recording:
    """A recorded pass, and the memory that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    inputs: Tensors
    output: torch.Tensor

    def replay(self, given: Tensors) -> torch.Tensor:
        """Run the pass on other inputs of the same shapes."""
        for name, values in given.items():
            self.inputs[name].copy_(values)
        self.graph.replay()
        return self.output


class Recorder:
    """Records passes that share one memory, as they run one after another."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._memory = torch.cuda.graph_pool_handle()
        self._keeper = torch.cuda.CUDAGraph()  # that memory ends with the last graph in it
        with warnings.catch_warnings(action="ignore"):  # that nothing was recorded
            self._capture(self._keeper, lambda: torch.empty(0))

    def record(self, given: Tensors, run: Pass, label: str) -> Recording:
        """Record a pass; nothing runs.

        Args:
            given: Inputs like those that it will be replayed on.
            run: The pass, which ran before.
            label: Whose it is.

        Raises:
            FedlogitError: if the model does what cannot be recorded, such as reading a number.
        """
        inputs = {name: values.clone() for name, values in given.items()}
        graph = torch.cuda.CUDAGraph()
        try:
            output = self._capture(graph, lambda: run(inputs))
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            why = str(error).partition("\n")[0]
            raise FedlogitError(
                f"engine = 'graphed' cannot record a pass of {label} as a CUDA graph ({why});"
                " a model must not wait for the GPU, such as by .item(); use engine = 'loop'"
            ) from error
        return Recording(graph, inputs, output)

    def _capture(
        self, graph: torch.cuda.CUDAGraph, run: Callable[[], torch.Tensor]
    ) -> torch.Tensor:
        with torch.cuda.graph(graph, pool=self._memory, stream=self._stream):
            return run()
