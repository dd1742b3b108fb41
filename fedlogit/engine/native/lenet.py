"""LeNet with Adam, a whole task in one call: the wrapper of ``lenet.h``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import nn

from fedlogit.engine.native.compiler import Compiled
from fedlogit.engine.transforms import CROP_PADDING
from fedlogit.models.lenet import LenetNetwork, LenetTanhNetwork

__all__ = ["TRAIN", "train_lenet"]

_POINTER, _INT, _INT64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_DOUBLE, _FLOAT, _FLOATS = ctypes.c_double, ctypes.c_float, ctypes.POINTER(ctypes.c_float)
_ARGUMENTS = (
    *[_POINTER] * 4, *[_INT] * 3, *[_POINTER] * 3, _INT, _FLOAT, _POINTER, _INT64,
    _POINTER, _INT, *[_FLOATS] * 2, *[_DOUBLE] * 4, _INT64, ctypes.POINTER(_INT),
)  # fmt: skip
TRAIN: dict[type[nn.Module], Compiled] = {
    network: Compiled(source, f"fedlogit_{source}_train", _ARGUMENTS, _DOUBLE)
    for network, source in ((LenetNetwork, "lenet"), (LenetTanhNetwork, "lenet_tanh"))
}
"""Of each form of LeNet, the function that trains it."""


def train_lenet(
    network: type[nn.Module],
    vector: torch.Tensor,
    moments: tuple[torch.Tensor, torch.Tensor],
    images: torch.Tensor,
    rows: torch.Tensor,
    targets: torch.Tensor,
    distributions: torch.Tensor,
    ends: torch.Tensor,
    *,
    temperature: float = 1.0,
    crops: torch.Tensor | None = None,
    scale: Sequence[float],
    shift: Sequence[float],
    adam: tuple[float, float, float, float],
    steps: int,
    cancel: ctypes.c_int,
) -> float:
    """Train LeNet on a sequence of minibatches, in place; return the summed loss.

    Args:
        network: Which form of it, a class that `TRAIN` has.
        vector: Flat parameters, float32, updated.
        moments: Adam's two, as `vector`, updated.
        images: uint8 (n, channels, height, width).
        rows: Image of each sample in order of training, int64 (samples,).
        targets: Row of `distributions` for each of them, int64 (samples,).
        distributions: Target distributions, float32 (m, classes).
        ends: Where each minibatch ends in `rows`, int64 (batches,).
        temperature: T, by which distributions have been softened before.
        crops: How each sample is cropped and mirrored, int64 (3, samples), from
            `fedlogit.engine.transforms.draw_crops`; None leaves images as they are.
        scale: Pixel v of channel c becomes ``v * scale[c] + shift[c]``.
        shift: See `scale`.
        adam: (learning rate, beta1, beta2, eps).
        steps: Adam steps taken before.
        cancel: Non-zero ends the call early.
    """
    before, after = (vector, *moments, images), (rows, targets, distributions)
    assert all(a.is_contiguous() for a in (*before, *after, ends))
    assert len(scale) == len(shift) == images.shape[1]
    assert len(vector) == len(moments[0]) == len(moments[1])
    assert crops is None or (crops.is_contiguous() and crops.shape == (3, len(rows)))
    constants = [(ctypes.c_float * images.shape[1])(*values) for values in (scale, shift)]
    return TRAIN[network](
        *(a.data_ptr() for a in before), *images.shape[1:], *(a.data_ptr() for a in after),
        distributions.shape[1], temperature, ends.data_ptr(), len(ends),
        None if crops is None else crops.data_ptr(), CROP_PADDING, *constants, *adam, steps,
        ctypes.byref(cancel),
    )  # fmt: skip
