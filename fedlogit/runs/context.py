"""What a run, or a stage of one, is computed with: data, engines, threads and provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from fedlogit.data import Dataset
from fedlogit.engine.float32 import configure_float32_matmul
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.federation import Federation
from fedlogit.methods import Method
from fedlogit.partition import Split
from fedlogit.runs.provenance import Provenance
from fedlogit.runs.setup import federate
from fedlogit.runs.workloads import choose_engines
from fedlogit.spec import RunSpec

__all__ = ["RunContext", "RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """How to run, as opposed to what: nothing here may change a number.

    Attributes:
        device: Where to compute.
        workers: Threads on a CPU.
        engine: How clients are run: ``auto``, ``loop``, ``native``, ``unpadded``, ``graphed`` or
            ``stacked``.
        checkpoint_seconds: Least time between checkpoints; 0 saves after every round.
        progress: Show a progress bar, or lines of it in a log.
    """

    device: torch.device
    workers: int = 1
    engine: str = "auto"
    checkpoint_seconds: float = 60.0
    progress: bool = True


class RunContext:
    """What a spec is computed with. The federation is built by `federation`, and not before.

    Attributes:
        provenance: The record of what numbers come from.
    """

    def __init__(
        self, spec: RunSpec, method: Method, dataset: Dataset, split: Split, options: RunOptions
    ) -> None:
        """Choose the engines of the clients and of the server.

        Args:
            spec: A resolved spec.
            method: The method it names.
            dataset: The data set it names.
            split: The partition of the training split it implies.
            options: How to run.

        Raises:
            FedlogitError: if the engine named in the options cannot run it.
        """
        self._given = spec, method, dataset, split, options.device
        self._options = options
        f32_matmul = configure_float32_matmul(options.device)
        self._engines = choose_engines(spec, method, options.device.type, options.engine)
        self.provenance = Provenance(
            spec, dataset, split, options.device, f32_matmul, self._engines.name
        )
        self.provenance.add(self._engines.facts)

    @contextmanager
    def federation(self, on_task: Callable[[], None]) -> Iterator[Federation]:
        """Yield the federation; its worker threads end with the block.

        Args:
            on_task: Called after each client's stage.
        """
        pool = WorkerPool(self._options.workers if self._options.device.type == "cpu" else 1)
        try:
            fed = federate(*self._given, pool, self._engines, on_task)
            fed.facts, fed.devices = self.provenance.decisive(), [self.provenance.device]
            yield fed
        finally:
            pool.close()
