"""ResNet-18 and `resnet_light` on a CPU, without the products that multiply padding.

After ResNet-18's first stem an image of 32 x 32 pixels has 8 x 8, 4 x 4, 2 x 2 and 1 x 1 positions
in its four stages. A 3 x 3 kernel on a single position multiplies padding with eight of its nine
weights, on 2 x 2 positions with five of nine; what it multiplies so is 0, and so is the gradient of
a weight that never meets anything else. Where that is more than half of all products, a convolution
is here a sum of matrix products, one for each place of the kernel, over the positions that exist.

Everything else is PyTorch's own, in its layout channels-last, in which its pools, batch norms and
narrow convolutions are the faster ones. ResNet-18 with its stem for small images gains nothing and
loses little: its convolutions are wide and have many positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, ClassVar, NamedTuple

import torch
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from fedlogit.engine.base import Workload
from fedlogit.engine.client import Client
from fedlogit.engine.loop import LoopEngine

__all__ = ["RESIDUAL", "UnpaddedEngine"]

RESIDUAL = ("resnet18", "resnet_light")
"""Models that it pays for. FedOL's wide ones have no such stage, and no narrow convolution."""


class UnpaddedEngine(LoopEngine):
    """Does what the loop does, with convolutions of its own where most of their work is padding."""

    name: ClassVar[str] = "unpadded"

    @classmethod
    def unsupported(cls, workload: Workload) -> str | None:
        """Return the first setting that it has no way to do, and what it should be."""
        needs = {
            "device = cpu": workload.device == "cpu",
            f"models = {' or '.join(RESIDUAL)}": workload.model in RESIDUAL,
            "precision = f32": workload.precision == "f32",
        }
        return next((need for need, fits in needs.items() if not fits), None)

    @classmethod
    def is_fastest(cls, workload: Workload) -> bool:
        """Always, where it can be run."""
        return True

    def logits(self, model: Client, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of one batch of images, (n, channels, height, width)."""
        with _Unpadded():
            return model.model(x.contiguous(memory_format=torch.channels_last))


class _Unpadded(TorchFunctionMode):
    """Replaces those convolutions, in this thread, of which most is padding."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.conv2d and not kwargs and (places := _of_call(args)):
            return _SumOfProducts.apply(*args[:2], places)
        return func(*args, **(kwargs or {}))


def _of_call(args: tuple[Any, ...]) -> _Places | None:
    """Return the places of a convolution as `nn.Conv2d` calls it; None leaves it to PyTorch."""
    match args:
        case (x, weight, None, (int(), int()) as stride, (int(), int()) as padding, (1, 1), 1):
            if x.dim() == 4:  # a single image has no axis of samples
                places = _places(x.shape[2:], weight.shape[2:], tuple(stride), tuple(padding))
                return places if places.are_few else None
    return None


class _Place(NamedTuple):
    """A place of a kernel.

    Attributes:
        at: Its row and column in the kernel.
        outputs: At which positions of the result it meets anything but padding, (rows, columns).
        inputs: What it meets there, (rows, columns).
    """

    at: tuple[int, int]
    outputs: tuple[slice, slice]
    inputs: tuple[slice, slice]


class _Places(NamedTuple):
    """The places of a kernel that meet anything but padding.

    Attributes:
        all: Those places.
        size: Height and width of the result.
        are_few: At most half of all products are with anything but padding.
    """

    all: tuple[_Place, ...]
    size: tuple[int, int]
    are_few: bool


@cache
def _places(
    image: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
) -> _Places:
    axes = list(zip(image, kernel, stride, padding, strict=True))
    height, width = ((side + 2 * pad - k) // step + 1 for side, k, step, pad in axes)
    rows, columns = (list(_along(*axis)) for axis in axes)
    found = [
        _Place((y, x), (to_y, to_x), (from_y, from_x))
        for (y, to_y, from_y), (x, to_x, from_x) in product(rows, columns)
    ]
    met = [sum(to.stop - to.start for _, to, _ in axis) for axis in (rows, columns)]
    whole = height * kernel[0] * width * kernel[1]
    return _Places(tuple(found), (height, width), 2 * met[0] * met[1] <= whole)


def _along(side: int, kernel: int, stride: int, padding: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield, along an axis, places in the kernel, where in the result they count, and on what."""
    outputs = (side + 2 * padding - kernel) // stride + 1
    for place in range(kernel):
        met = [o for o in range(outputs) if 0 <= o * stride + place - padding < side]
        if met:
            first, last = (o * stride + place - padding for o in (met[0], met[-1]))
            yield place, slice(met[0], met[-1] + 1), slice(first, last + 1, stride)


class _SumOfProducts(torch.autograd.Function):
    """A convolution of images (n, in, height, width) without bias.

    The backward pass adds to the weight's gradient in place: all of a 3 x 3 kernel as a tensor of
    its own, most of it zeros, would take longer than the products. Positions lie outermost, so that
    some of them are matrices as they lie.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, places: _Places) -> torch.Tensor:
        x = x.permute(2, 3, 0, 1).contiguous()
        kernel = weight.permute(2, 3, 0, 1)
        matrices = [kernel[place.at].contiguous() for place in places.all]
        y = x.new_zeros(*places.size, x.shape[2], len(weight))
        for place, matrix in zip(places.all, matrices, strict=True):
            to = y[place.outputs]
            to.add_((x[place.inputs].flatten(0, 2) @ matrix.T).view_as(to))
        ctx.places, ctx.weight = places, weight
        ctx.save_for_backward(x, *matrices)
        return _channels_last(y)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        x, *matrices = ctx.saved_tensors
        grad = grad.permute(2, 3, 0, 1).contiguous()
        of_kernel = ctx.weight.grad.permute(2, 3, 0, 1)
        of_x = torch.zeros_like(x)
        for place, matrix in zip(ctx.places.all, matrices, strict=True):
            part = grad[place.outputs].flatten(0, 2)
            of_kernel[place.at].add_(part.T @ x[place.inputs].flatten(0, 2))
            to = of_x[place.inputs]
            to.add_((part @ matrix).view_as(to))
        return _channels_last(of_x), None, None


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    """Return (height, width, n, channels) as (n, channels, height, width), channels-last."""
    return x.permute(2, 0, 1, 3).contiguous().permute(0, 3, 1, 2)
