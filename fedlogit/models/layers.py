"""Layers that PyTorch has too, done faster on a CPU or without global state."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable

__all__ = ["BatchStatNorm", "MaxPool2x2"]


class _MaxPool2x2(torch.autograd.Function):
    """2 x 2 maxima from strided slices; ties go to the first in row-major order, as in PyTorch.

    Only comparisons are kept for the backward pass: where the right one of two neighbours was
    larger, above and below, and where the lower row was.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b, c, d = _corners(x)
        top, bottom = torch.maximum(a, b), torch.maximum(c, d)
        return torch.maximum(top, bottom), b > a, d > c, bottom > top

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[torch.Tensor], output: tuple[torch.Tensor, ...]
    ) -> None:
        ctx.shape = inputs[0].shape
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*output[1:])

    @staticmethod
    @once_differentiable  # the writes into `out` cannot be differentiated again
    def backward(ctx: Any, grad: torch.Tensor | None, *_: None) -> torch.Tensor | None:
        if grad is None:
            return None
        right_above, right_below, below = ctx.saved_tensors
        odd = ctx.shape[-2] % 2 or ctx.shape[-1] % 2
        out = grad.new_zeros(ctx.shape) if odd else grad.new_empty(ctx.shape)
        a, b, c, d = _corners(out)
        low = grad * below
        top = grad - low
        b.copy_(top * right_above)
        a.copy_(top - b)
        d.copy_(low * right_below)
        c.copy_(low - d)
        return out


def _corners(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return views of the four corners of each 2 x 2 window, row by row."""
    height, width = x.shape[-2] // 2 * 2, x.shape[-1] // 2 * 2
    upper, lower = x[..., 0:height:2, :], x[..., 1:height:2, :]
    left, right = slice(0, width, 2), slice(1, width, 2)
    return upper[..., left], upper[..., right], lower[..., left], lower[..., right]


class MaxPool2x2(nn.Module):
    """``nn.MaxPool2d(2)``: the same values and gradients, about twice as fast on a CPU.

    PyTorch's kernel takes a quarter of LeNet's training step there. It is the faster one on GPUs
    and on tensors in another layout, such as channels-last, and is used for those. Odd rows and
    columns at the end are dropped, as PyTorch does. `torch.func.grad` and `torch.func.vmap` work;
    second derivatives raise.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pool (…, H, W) to (…, H // 2, W // 2)."""
        if x.is_cuda or not x.is_contiguous():
            return F.max_pool2d(x, 2)
        if torch.is_grad_enabled():
            return _MaxPool2x2.apply(x)[0]
        a, b, c, d = _corners(x)  # without a backward pass there are no comparisons to keep
        return torch.maximum(torch.maximum(a, b), torch.maximum(c, d))


class BatchStatNorm(nn.BatchNorm2d):
    """Batch norm that uses the batch's own statistics at training and at test time.

    TallyTrain's appendix A replaces batch norm by a form without running statistics. It takes
    images, (n, features, height, width), and features without positions, (n, features).
    """

    def __init__(self, features: int) -> None:
        super().__init__(features, track_running_stats=False)

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() != 2:
            super()._check_input_dim(input)
