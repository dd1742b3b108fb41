"""The native engine: a client's task, or each of its passes, in one call of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeGuard

import torch
import torch.nn.functional as F
from torch import nn

from fedlogit.data import UNKNOWN
from fedlogit.engine.base import Workload
from fedlogit.engine.client import Client
from fedlogit.engine.device_data import DeviceData
from fedlogit.engine.loop import LoopEngine
from fedlogit.engine.native import mlp
from fedlogit.engine.native.compiler import Compiled, compiler_version, load
from fedlogit.engine.native.lenet import TRAIN, train_lenet
from fedlogit.engine.native.mlp import mlp_logits, train_mlp
from fedlogit.engine.native.passes import LENET, LENET_BN, LENET_TANH, TF_CNN
from fedlogit.engine.task import ClientTask, checked_mean
from fedlogit.engine.transforms import scale_and_shift
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.errors import FedlogitError
from fedlogit.models.mlp import MlpNetwork

__all__ = ["PERCEPTRONS", "NativeEngine"]

PERCEPTRONS = ("mlp", "mlp_net", "mlp4w")
# What trains in one call: of a task, its data, the run's threads, and samples in order of training.
_Train = Callable[[ClientTask, DeviceData, WorkerPool, tuple[torch.Tensor, ...]], float]
_PASSES = {passes.network: passes for passes in (LENET, LENET_BN, LENET_TANH, TF_CNN)}
_NETWORKS = ", ".join(passes.model for passes in _PASSES.values())
_FUNCTIONS: dict[str, Compiled] = dict.fromkeys(PERCEPTRONS, mlp.TRAIN) | {
    passes.model: passes.forward for passes in _PASSES.values()
}


class NativeEngine(LoopEngine):
    """Trains in compiled code: some tasks in one call, of others each pass.

    Where the passes alone are compiled, minibatches, losses and steps are the loop's own.
    """

    name: ClassVar[str] = "native"

    @classmethod
    def unsupported(cls, workload: Workload) -> str | None:
        """Return the first setting that compiled code has no way to do, and what it should be."""
        needs = {
            "device = cpu": workload.device == "cpu",
            f"models = {_NETWORKS}, or perceptrons such as mlp_net": workload.model in _FUNCTIONS,
            "precision = f32": workload.precision == "f32",
        }
        if workload.model in PERCEPTRONS:
            needs |= _of_perceptrons(workload)
        return next((need for need, fits in needs.items() if not fits), None)

    @classmethod
    def unavailable(cls, workload: Workload) -> str | None:
        """Compile what is needed; return why that cannot be done, or None."""
        try:
            load(_FUNCTIONS[workload.model])
        except FedlogitError as error:
            return str(error)
        return None

    @classmethod
    def facts(cls) -> dict[str, str]:
        """Return the compiler's version."""
        return {"compiler": compiler_version()}

    @classmethod
    def is_fastest(cls, workload: Workload) -> bool:
        """Always, where it can be run."""
        return True

    def logits(self, model: Client, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of one batch, from compiled code where it has the model's passes."""
        passes = _PASSES.get(type(model.model))
        if passes and len(x) >= passes.smallest:
            return passes.logits(model.vector, x, self.data.classes)
        if _is_perceptron(model.model) and not torch.is_grad_enabled():
            return mlp_logits(model.vector, x, sizes=model.model.sizes, pad=model.model.pad)
        return super().logits(model, x)

    def run(self, task: ClientTask) -> float:
        """Run one task, in one call of compiled code where that can do all of it."""
        if not task.batches or not all(task.sizes()):  # a mean over nothing is no number
            return super().run(task)
        model = task.client.model
        if _is_perceptron(model) and task.augment is None and _is_plain(task, "sgd"):
            return self._at_once(task, _perceptron)
        if type(model) in TRAIN and _is_plain(task, "adam"):
            return self._at_once(task, _lenet)
        return super().run(task)

    def _at_once(self, task: ClientTask, train: _Train) -> float:
        self.pool.check()
        positions = torch.cat(task.batches)
        ends = torch.tensor(task.sizes()).cumsum(0)
        distributions, targets = _targets(task, positions, self.data.classes)
        order = (self.data.x, task.indices[positions], targets, distributions, ends)
        total = train(task, self.data, self.pool, order)
        self.pool.check()
        return checked_mean(total, len(positions), task)


def _is_perceptron(model: nn.Module) -> TypeGuard[MlpNetwork]:
    """Return whether compiled code does what a model does; a subclass may do something else."""
    return type(model) is MlpNetwork


def _of_perceptrons(workload: Workload) -> dict[str, bool]:
    """Return what a perceptron, whose passes are not compiled, must be trained with."""
    optimizer = workload.optimizer
    return {
        "optimizer.name = sgd": optimizer.name == "sgd",
        "optimizer.momentum = 0": optimizer.momentum == 0,
        "optimizer.weight_decay = 0": optimizer.weight_decay == 0,
        "optimizer.clip = null": optimizer.clip is None,
        "optimizer.zero_nonfinite_grads = false": not optimizer.zero_nonfinite_grads,
        "augment = none": not workload.augment,
        "a method without proximal term": not workload.proximal,
        "public samples whose labels are known": not workload.unlabelled,
    }


def _is_plain(task: ClientTask, optimizer: str) -> bool:
    """Return whether a task is a plain optimizer on the loss alone, and its labels are known.

    The loss is a single term, or the sum of two that have the same temperature.
    """
    settings = task.client.settings
    return (
        (settings.name, settings.momentum, settings.weight_decay) == (optimizer, 0, 0)
        and settings.clip is None
        and not settings.zero_nonfinite_grads
        and task.prox_center is None
        and (task.labels is None or bool((task.labels != UNKNOWN).all()))
        and (task.temperature == 1 or task.labels is None)
    )


def _lenet(
    task: ClientTask, data: DeviceData, pool: WorkerPool, order: tuple[torch.Tensor, ...]
) -> float:
    client = task.client
    group = client.optimizer.param_groups[0]
    state = client.optimizer.state[client.vector]
    if not state:
        zeros = torch.zeros_like(client.vector.data)
        state |= {"step": torch.tensor(0.0), "exp_avg": zeros, "exp_avg_sq": zeros.clone()}
    scale, shift = scale_and_shift(data.mean, data.std)
    crops = [drawn for drawn in task.crops(data.device) if drawn is not None]
    total = train_lenet(
        type(client.model),
        client.vector.data,
        (state["exp_avg"], state["exp_avg_sq"]),
        *order,
        temperature=task.temperature,
        crops=torch.cat(crops, 1) if crops else None,
        scale=scale,
        shift=shift,
        adam=(group["lr"], *group["betas"], group["eps"]),
        steps=int(state["step"]),
        cancel=pool.cancelled,
    )
    state["step"] += len(task.batches)
    return total


def _perceptron(
    task: ClientTask, data: DeviceData, pool: WorkerPool, order: tuple[torch.Tensor, ...]
) -> float:
    client = task.client
    scale, shift = scale_and_shift(data.mean, data.std)
    assert isinstance(client.model, MlpNetwork)
    return train_mlp(
        client.vector.data,
        *order,
        sizes=client.model.sizes,
        pad=client.model.pad,
        scale=scale,
        shift=shift,
        rate=client.optimizer.param_groups[0]["lr"],
        temperature=task.temperature,
        cancel=pool.cancelled,
    )


def _targets(
    task: ClientTask, positions: torch.Tensor, classes: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return target distributions and, for each sample in order, which of them it has."""
    if task.soft is None:
        assert task.labels is not None
        return torch.eye(classes) * task.label_weight, task.labels[positions]
    soft = task.soft.float()
    if task.labels is not None:
        soft = soft + task.label_weight * F.one_hot(task.labels, classes)
    return soft.contiguous(), positions
