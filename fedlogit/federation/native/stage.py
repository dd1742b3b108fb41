"""One client's stage on the native kernel: what `fedlogit.federation.work.run_work` does."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from fedlogit.federation.device_data import DeviceData
from fedlogit.federation.executor import Executor
from fedlogit.federation.native import train_lenet
from fedlogit.federation.work import Work, checked_mean

__all__ = ["run_native"]


def run_native(work: Work, data: DeviceData, executor: Executor, precision: str) -> float:
    """Train in one call of compiled code, and return the mean loss over samples.

    Raises:
        Diverged: if the loss is no longer finite.
    """
    assert precision == "f32"
    executor.check()
    client = work.client
    positions = torch.cat(work.batches)
    ends = torch.tensor([len(b) for b in work.batches]).cumsum(0)
    distributions, targets = _targets(work, positions, data.classes)
    group = client.optimizer.param_groups[0]
    state = client.optimizer.state[client.vector]
    if not state:
        zeros = torch.zeros_like(client.vector.data)
        state |= {"step": torch.tensor(0.0), "exp_avg": zeros, "exp_avg_sq": zeros.clone()}
    total = train_lenet(
        client.vector.data,
        (state["exp_avg"], state["exp_avg_sq"]),
        data.x,
        work.points[positions],
        targets,
        distributions,
        ends,
        pixels=_pixels(data),
        adam=(group["lr"], *group["betas"], group["eps"]),
        steps=int(state["step"]),
        cancel=executor.cancelled,
    )
    executor.check()
    state["step"] += len(ends)
    return checked_mean(total, len(positions), work)


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


def _pixels(data: DeviceData) -> tuple[float, float]:
    """Return scale and shift of `normalise` for one channel."""
    return 1 / (255 * data.std[0]), -data.mean[0] / data.std[0]
