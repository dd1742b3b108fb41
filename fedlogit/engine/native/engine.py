"""The native engine: a client's task in one call of compiled code."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F

from fedlogit.engine.base import Workload
from fedlogit.engine.client import Client
from fedlogit.engine.device_data import DeviceData
from fedlogit.engine.loop import LoopEngine
from fedlogit.engine.native import lenet, mlp
from fedlogit.engine.native.compiler import Compiled, load
from fedlogit.engine.native.lenet import lenet_logits, train_lenet
from fedlogit.engine.native.mlp import mlp_logits, train_mlp
from fedlogit.engine.native.passes import LENET_BN, TF_CNN
from fedlogit.engine.task import ClientTask, checked_mean
from fedlogit.engine.transforms import scale_and_shift
from fedlogit.engine.worker_pool import WorkerPool
from fedlogit.errors import FedlogitError
from fedlogit.models.lenet import LenetNetwork
from fedlogit.models.mlp import MlpNetwork

__all__ = ["PERCEPTRONS", "NativeEngine"]

PERCEPTRONS = ("mlp", "mlp_net", "mlp4w")
_PASSES = {passes.network: passes for passes in (TF_CNN, LENET_BN)}
_WHOLE_TASKS = {"lenet": lenet.TRAIN, **dict.fromkeys(PERCEPTRONS, mlp.TRAIN)}
_FUNCTIONS: dict[str, Compiled] = _WHOLE_TASKS | {
    passes.model: passes.forward for passes in _PASSES.values()
}


class NativeEngine(LoopEngine):
    """Trains in compiled code: some models a whole task in one call, others a pass in one call.

    Of a model whose passes are compiled, minibatches, losses and steps are the loop's own.
    """

    name: ClassVar[str] = "native"

    @classmethod
    def unsupported(cls, workload: Workload) -> str | None:
        """Return the first setting that compiled code has no way to do, and what it should be."""
        needs = {
            "device = cpu": workload.device == "cpu",
            "models = lenet, lenet_bn, tf_cnn, or perceptrons such as mlp_net": workload.model
            in _FUNCTIONS,
            "precision = f32": workload.precision == "f32",
        }
        if workload.model in _WHOLE_TASKS:
            needs |= _of_whole_tasks(workload)
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
    def is_fastest(cls, workload: Workload) -> bool:
        """Always, where it can be run."""
        return True

    def logits(self, model: Client, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of one batch, from compiled code where it has the model's passes."""
        passes = _PASSES.get(type(model.model))
        if passes and len(x) >= passes.smallest:
            return passes.logits(model.vector, x, self.data.classes)
        match model.model:
            case LenetNetwork() if not torch.is_grad_enabled() and x.shape[1:] == (1, 28, 28):
                return lenet_logits(model.vector, x, self.data.classes)
            case MlpNetwork(sizes=sizes, pad=pad) if not torch.is_grad_enabled():
                return mlp_logits(model.vector, x, sizes=sizes, pad=pad)
            case _:
                return super().logits(model, x)

    def run(self, task: ClientTask) -> float:
        """Run one task, in one call of compiled code unless that has the model's passes alone."""
        if type(task.client.model) in _PASSES:
            return super().run(task)
        assert task.prox_center is None
        self.pool.check()
        positions = torch.cat(task.batches)
        ends = torch.tensor(task.sizes()).cumsum(0)
        distributions, targets = _targets(task, positions, self.data.classes)
        order = (self.data.x, task.indices[positions], targets, distributions, ends)
        adam = isinstance(task.client.optimizer, torch.optim.Adam)
        total = (_lenet if adam else _perceptron)(task, self.data, self.pool, order)
        self.pool.check()
        return checked_mean(total, len(positions), task)


def _of_whole_tasks(workload: Workload) -> dict[str, bool]:
    """Return what a model must be trained with whose tasks run in one call."""
    perceptron = workload.model in PERCEPTRONS
    optimizer = workload.optimizer
    name = "sgd" if perceptron else "adam"
    return {
        "images of 28 x 28 x 1 for lenet": perceptron or workload.shape == (1, 28, 28),
        f"optimizer.name = {name}": optimizer.name == name,
        "optimizer.momentum = 0": optimizer.momentum == 0,
        "optimizer.weight_decay = 0": optimizer.weight_decay == 0,
        "optimizer.clip = null": optimizer.clip is None,
        "optimizer.zero_nonfinite_grads = false": not optimizer.zero_nonfinite_grads,
        "augment = none": not workload.augment,
        "a method without proximal term": not workload.proximal,
        "public samples whose labels are known": not workload.unlabelled,
    }


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
    total = train_lenet(
        client.vector.data,
        (state["exp_avg"], state["exp_avg_sq"]),
        *order,
        pixels=(scale[0], shift[0]),
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
        cancel=pool.cancelled,
    )


def _targets(
    task: ClientTask, positions: torch.Tensor, classes: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return target distributions and, for each sample in order, which of them it has."""
    if task.soft is None:
        assert task.labels is not None
        return torch.eye(classes) * task.label_weight, task.labels[positions]
    soft = task.soft
    if task.labels is not None:
        soft = soft + task.label_weight * F.one_hot(task.labels, classes)
    return soft.contiguous(), positions
