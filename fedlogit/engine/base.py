"""What an engine is: a way to run clients, which changes how fast a run is and not what it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedlogit.engine.client import Client
from fedlogit.engine.device_data import DeviceData
from fedlogit.engine.one_sample import explain_single_sample
from fedlogit.engine.task import ClientTask
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.spec import Optimizer

__all__ = ["Engine", "Workload"]

R = TypeVar("R")


@dataclass(frozen=True)
class Workload:
    """A kind of model and how it is trained: all that the choice of an engine may depend on.

    Attributes:
        model: The architecture's name in `fedlogit.models`.
        device: Type of the device: ``cpu`` or ``cuda``.
        optimizer: The optimizer's settings.
        augment: Images are cropped and flipped.
        proximal: There is a proximal term.
        unlabelled: Some samples have labels that nobody knows.
        precision: As `RunSpec.precision`.
    """

    model: str
    device: str
    optimizer: Optimizer
    augment: bool = False
    proximal: bool = False
    unlabelled: bool = False
    precision: str = "f32"


class Engine(ABC):
    """Trains models and predicts with them; all agree with `loop` within the tested tolerance.

    Attributes:
        name: What settings and results call it.
    """

    name: ClassVar[str]

    def __init__(
        self,
        data: DeviceData,
        pool: WorkerPool,
        precision: str = "f32",
        on_task: Callable[[ClientTask, float], None] = lambda *_: None,
    ) -> None:
        """Make an engine for a run.

        Args:
            data: The data set on its device.
            pool: The run's threads.
            precision: As `RunSpec.precision`.
            on_task: Called with a client's task and its mean loss whenever one finished a phase, in
                the thread that did it.
        """
        self.data = data
        self.pool = pool
        self.precision = precision
        self.on_task = on_task

    @classmethod
    def unsupported(cls, workload: Workload) -> str | None:
        """Return what a workload would have to be like, or None if it can be run as it is."""
        return None

    @classmethod
    def unavailable(cls, workload: Workload) -> str | None:
        """Return what this machine lacks for a supported workload, or None."""
        return None

    @classmethod
    def facts(cls) -> dict[str, str]:
        """Return what decides its bits here besides this library, PyTorch and NumPy."""
        return {}

    @classmethod
    def is_fastest(cls, workload: Workload) -> bool:
        """Return whether ``auto`` prefers it to `loop` for a workload that it supports."""
        return False

    @abstractmethod
    def train(self, tasks: Sequence[ClientTask]) -> list[float]:
        """Run tasks of different models, and return each one's mean loss over samples.

        Raises:
            Diverged: if a task's loss is no longer finite; with `Optimizer.zero_nonfinite_grads`,
                that of all its minibatches.
        """

    @abstractmethod
    def predict(
        self, models: Sequence[Client], batches: Iterable[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Yield the logits of models in evaluation mode on the same inputs, batch after batch.

        Args:
            models: Of any architectures.
            batches: Inputs, as of `DeviceData.test_inputs`.

        Yields:
            float32 (models, n, classes), or (models, n, T, classes).
        """

    def predict_one(self, model: Client, batches: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
        """Yield one model's logits, float32 (n, classes) or (n, T, classes), batch after batch."""
        model.model.eval()
        for x in batches:
            yield self.forward(model, x)

    def forward(self, model: Client, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of one batch without gradients; the model's mode is the caller's."""
        self.pool.check()
        with torch.no_grad(), self.autocast(), explain_single_sample(model, "prediction"):
            return self.logits(model, x)

    def logits(self, model: Client, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of one batch; gradients are those of the client's flat vector."""
        return model.model(x).float()

    def autocast(self) -> torch.autocast:
        """Return the context of a forward pass, which `precision` decides."""
        return torch.autocast(
            self.data.device.type, torch.bfloat16, enabled=self.precision == "bf16"
        )

    def map(self, fn: Callable[[Client], R], models: Sequence[Client]) -> list[R]:
        """Return ``[fn(model) for model in models]``, several side by side in threads.

        Args:
            fn: It may change its own model only.
            models: Of any architectures.
        """
        return self.pool.map(fn, models)

    @property
    def trains_together(self) -> bool:
        """Whether a client's numbers may depend on which others are trained in the same call."""
        return False

    def prediction_batch(self, models: Sequence[Client]) -> int:
        """Return the samples of a pass without gradients.

        On a GPU small passes wait for the launches of kernels. A model that normalises by the
        statistics of its batch predicts otherwise in a larger one, so it keeps the CPU's.
        """
        if self.data.device.type != "cuda" or any(_needs_batch(model.model) for model in models):
            return self.data.batch
        return self.data.gpu_batch


def _needs_batch(model: nn.Module) -> bool:
    """Return whether a model normalises by the statistics of a batch when it predicts, too."""
    norms = (layer for layer in model.modules() if isinstance(layer, _BatchNorm))
    return any(norm.running_mean is None for norm in norms)
