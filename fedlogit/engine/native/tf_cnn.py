"""CELM's CNN as one operation of autograd: the wrapper of ``tf_cnn.cpp``."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from fedlogit.engine.native.compiler import Compiled

__all__ = ["FORWARD", "tf_cnn_logits"]

_POINTER, _INT, _INT64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_SIZES = (_INT64, *[_INT] * 4)  # samples, channels, height, width, classes
_KEPT = Compiled("tf_cnn", "fedlogit_tf_cnn_kept", _SIZES, _INT64)
FORWARD = Compiled(
    "tf_cnn", "fedlogit_tf_cnn_forward", (_POINTER, _POINTER, *_SIZES, _POINTER, _POINTER)
)
_BACKWARD = Compiled("tf_cnn", "fedlogit_tf_cnn_backward", (_POINTER, *_SIZES, *[_POINTER] * 3))


def tf_cnn_logits(vector: torch.Tensor, images: torch.Tensor, classes: int) -> torch.Tensor:
    """Return what `fedlogit.models.cnn.TfCnn` says; its gradient is that of the parameters.

    Args:
        vector: Flat parameters in PyTorch's order, float32.
        images: Normalised, float32 (n, channels, height, width); height and width at least 18.
        classes: Number of classes.

    Returns:
        float32 (n, classes).
    """
    if torch.is_grad_enabled():
        return _TfCnn.apply(vector, images.contiguous(), classes)
    return _forward(vector, images.contiguous(), classes, None)


class _TfCnn(torch.autograd.Function):
    """Logits of a minibatch, with the activations that the way back needs."""

    @staticmethod
    def forward(ctx: Any, vector: torch.Tensor, images: torch.Tensor, classes: int) -> torch.Tensor:
        ctx.sizes = (*images.shape, classes)
        kept = torch.empty(_KEPT(*ctx.sizes))
        ctx.save_for_backward(vector, kept)
        return _forward(vector, images, classes, kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        vector, kept = ctx.saved_tensors
        found = torch.zeros_like(vector)
        _BACKWARD(
            vector.data_ptr(), *ctx.sizes,
            kept.data_ptr(), grad.contiguous().data_ptr(), found.data_ptr(),
        )  # fmt: skip
        return found, None, None


def _forward(
    vector: torch.Tensor, images: torch.Tensor, classes: int, kept: torch.Tensor | None
) -> torch.Tensor:
    logits = torch.empty(len(images), classes)
    FORWARD(
        vector.data_ptr(), images.data_ptr(), *images.shape, classes,
        logits.data_ptr(), None if kept is None else kept.data_ptr(),
    )  # fmt: skip
    return logits
