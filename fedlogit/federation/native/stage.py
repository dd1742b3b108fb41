"""One client's stage on a native kernel: what `fedlogit.federation.work.run_work` does."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from fedlogit.errors import FedlogitError
from fedlogit.federation.device_data import DeviceData
from fedlogit.federation.executor import Executor
from fedlogit.federation.native.lenet import train_lenet
from fedlogit.federation.native.mlp import train_mlp
from fedlogit.federation.work import Work, checked_mean

__all__ = ["run_native"]


def run_native(work: Work, data: DeviceData, executor: Executor, precision: str) -> float:
    """Train in one call of compiled code, and return the mean loss over samples.

    Raises:
        Diverged: if the loss is no longer finite.
    """
    assert precision == "f32"
    if work.anchor is not None:
        raise FedlogitError(
            "kernel = 'native' has no proximal term; use kernel = 'autograd' for FedProx"
        )
    executor.check()
    positions = torch.cat(work.batches)
    ends = torch.tensor([len(b) for b in work.batches]).cumsum(0)
    distributions, targets = _targets(work, positions, data.classes)
    order = (data.x, work.points[positions], targets, distributions, ends)
    adam = isinstance(work.client.optimizer, torch.optim.Adam)
    total = (_lenet if adam else _perceptron)(work, data, executor, order)
    executor.check()
    return checked_mean(total, len(positions), work)


def _lenet(
    work: Work, data: DeviceData, executor: Executor, order: tuple[torch.Tensor, ...]
) -> float:
    client = work.client
    group = client.optimizer.param_groups[0]
    state = client.optimizer.state[client.vector]
    if not state:
        zeros = torch.zeros_like(client.vector.data)
        state |= {"step": torch.tensor(0.0), "exp_avg": zeros, "exp_avg_sq": zeros.clone()}
    scale, shift = _pixels(data)
    total = train_lenet(
        client.vector.data,
        (state["exp_avg"], state["exp_avg_sq"]),
        *order,
        pixels=(scale[0], shift[0]),
        adam=(group["lr"], *group["betas"], group["eps"]),
        steps=int(state["step"]),
        cancel=executor.cancelled,
    )
    state["step"] += len(work.batches)
    return total


def _perceptron(
    work: Work, data: DeviceData, executor: Executor, order: tuple[torch.Tensor, ...]
) -> float:
    client = work.client
    scale, shift = _pixels(data)
    layers = [layer for layer in client.model.children() if isinstance(layer, nn.Linear)]
    return train_mlp(
        client.vector.data,
        *order,
        sizes=[layer.out_features for layer in layers],
        pad=int(client.model.pad),  # type: ignore[arg-type]
        scale=scale,
        shift=shift,
        rate=client.optimizer.param_groups[0]["lr"],
        cancel=executor.cancelled,
    )


def _targets(
    work: Work, positions: torch.Tensor, classes: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return target distributions and, for each sample in order, which of them it has."""
    if work.soft is None:
        assert work.labels is not None
        return torch.eye(classes) * work.label_weight, work.labels[positions]
    soft = work.soft_weight * work.soft
    if work.labels is not None:
        soft = soft + work.label_weight * F.one_hot(work.labels, classes)
    return soft.contiguous(), positions


def _pixels(data: DeviceData) -> tuple[list[float], list[float]]:
    """Return scale and shift of `normalise` for each channel."""
    pairs = list(zip(data.mean, data.std, strict=True))
    return [1 / (255 * std) for _, std in pairs], [-mean / std for mean, std in pairs]
