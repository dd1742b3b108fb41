"""A job that is a part of a run: a federation to work with, and a record of where it worked."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from tqdm import tqdm

from fedlogit import methods
from fedlogit.engine.float32 import f32_products
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.runs.provenance import Provenance
from fedlogit.runs.setup import federate, open_data, sample_shape
from fedlogit.runs.workloads import choose_engines
from fedlogit.spec import RunSpec

__all__ = ["Job"]


class Job:
    """Opens the data and builds the federation of a spec; use it in a `with` statement.

    Attributes:
        federation: What the job works on.
    """

    def __init__(
        self,
        spec: RunSpec,
        data: Path,
        split: Path | None,
        device: torch.device,
        workers: int,
        bar: bool,
        engine: str = "auto",
    ) -> None:
        """Build the federation.

        Args:
            spec: A resolved spec.
            data: Folder of prepared data sets.
            split: ``indices.npz``; None divides anew.
            device: Where to compute.
            workers: Threads on a CPU.
            bar: Show a progress bar, a step a client.
            engine: How clients are run.

        Raises:
            FedlogitError: if the data are not there.
        """
        dataset, division = open_data(spec, data, split)
        method = methods.get(spec.method)
        engines = choose_engines(spec, method, sample_shape(dataset), device.type, engine)
        products = f32_products(device)
        self._provenance = Provenance(spec, dataset, division, device, products, engines.name)
        self._pool = WorkerPool(workers if device.type == "cpu" else 1)
        name = f"{spec.dataset} {spec.partition} clients seed {spec.seed}"
        self._bar = tqdm(total=spec.clients, desc=name, unit="client", disable=not bar)
        self._start = time.perf_counter()
        self.federation = federate(
            spec, method, dataset, division, device, self._pool, engines, self._advance
        )
        self.federation.facts = self.decisive()

    def _advance(self) -> None:
        self._bar.update()

    def decisive(self) -> dict[str, Any]:
        """Return the facts that decide every bit of what the job makes."""
        return self._provenance.decisive()

    def record(self) -> dict[str, Any]:
        """Return facts about the job, as a run's provenance."""
        return self._provenance.record(time.perf_counter() - self._start)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.close()
        self._bar.close()
