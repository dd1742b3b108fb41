"""Perceptrons, and SGD for them: the wrapper of ``mlp.cpp``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch

from fedlogit.engine.native.compiler import Compiled

__all__ = ["TRAIN", "mlp_logits", "train_mlp"]

_POINTER, _INT, _INT64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_FLOAT, _DOUBLE = ctypes.c_float, ctypes.c_double
TRAIN = Compiled(
    "mlp", "fedlogit_mlp_train",
    (_POINTER, _POINTER, *[_INT] * 4, _POINTER, _INT, *[_POINTER] * 3, _FLOAT, _POINTER, _INT64,
     _POINTER, _POINTER, _DOUBLE, ctypes.POINTER(_INT)),
    _DOUBLE,
)  # fmt: skip
_LOGITS = Compiled(
    "mlp", "fedlogit_mlp_logits",
    (_POINTER, _POINTER, _INT64, *[_INT] * 4, _POINTER, _INT, _POINTER),
)  # fmt: skip


def train_mlp(
    vector: torch.Tensor,
    images: torch.Tensor,
    rows: torch.Tensor,
    targets: torch.Tensor,
    distributions: torch.Tensor,
    ends: torch.Tensor,
    *,
    sizes: Sequence[int],
    pad: int,
    scale: Sequence[float],
    shift: Sequence[float],
    rate: float,
    temperature: float = 1.0,
    cancel: ctypes.c_int,
) -> float:
    """Train a perceptron by plain SGD on minibatches, in place; return the summed loss.

    Args:
        vector: Flat parameters, float32, updated.
        images: uint8 (n, channels, height, width).
        rows: Image of each sample in order of training, int64 (samples,).
        targets: Row of `distributions` for each of them, int64 (samples,).
        distributions: Target distributions, float32 (m, classes).
        ends: Where each minibatch ends in `rows`, int64 (batches,).
        sizes: Units of each layer, the classes last.
        pad: Pixels of zeros around the normalised image.
        scale: Pixel v of channel c becomes ``v * scale[c] + shift[c]``.
        shift: See `scale`.
        rate: Learning rate.
        temperature: T, by which distributions have been softened before.
        cancel: Non-zero ends the call early.
    """
    channels, height, width = images.shape[1:]
    arrays = (images, rows, targets, distributions, ends)
    assert vector.is_contiguous()
    assert all(a.is_contiguous() for a in arrays)
    layers = (ctypes.c_int32 * len(sizes))(*sizes)
    constants = [(ctypes.c_float * channels)(*values) for values in (scale, shift)]
    return TRAIN(
        vector.data_ptr(), images.data_ptr(), channels, height, width, pad, layers, len(sizes),
        rows.data_ptr(), targets.data_ptr(), distributions.data_ptr(), temperature,
        ends.data_ptr(), len(ends), *constants, rate, ctypes.byref(cancel),
    )  # fmt: skip


def mlp_logits(
    vector: torch.Tensor, images: torch.Tensor, *, sizes: Sequence[int], pad: int
) -> torch.Tensor:
    """Return a perceptron's logits; there is no backward pass.

    Args:
        vector: Flat parameters, float32.
        images: Normalised, float32 (n, channels, height, width), without their padding.
        sizes: Units of each layer, the classes last.
        pad: Pixels of zeros around the image.

    Returns:
        float32 (n, classes).
    """
    images, logits = images.contiguous(), torch.empty(len(images), sizes[-1])
    layers = (ctypes.c_int32 * len(sizes))(*sizes)
    _LOGITS(
        vector.data_ptr(), images.data_ptr(), *images.shape, pad, layers, len(sizes),
        logits.data_ptr(),
    )  # fmt: skip
    return logits
