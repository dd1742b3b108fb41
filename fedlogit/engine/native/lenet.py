"""LeNet with Adam: the wrapper of ``lenet.cpp``."""

from __future__ import annotations

import ctypes

import torch

from fedlogit.engine.native.compiler import Compiled

__all__ = ["TRAIN", "lenet_logits", "train_lenet"]

_MAX_CLASSES = 64
_POINTER, _INT64, _DOUBLE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
TRAIN = Compiled(
    "lenet", "fedlogit_lenet_train",
    (*[_POINTER] * 7, ctypes.c_int, _POINTER, _INT64, ctypes.c_float, ctypes.c_float,
     *[_DOUBLE] * 4, _INT64, ctypes.POINTER(ctypes.c_int)),
    _DOUBLE,
)  # fmt: skip
_LOGITS = Compiled(
    "lenet", "fedlogit_lenet_logits", (_POINTER, _POINTER, _INT64, ctypes.c_int, _POINTER)
)


def train_lenet(
    vector: torch.Tensor,
    moments: tuple[torch.Tensor, torch.Tensor],
    images: torch.Tensor,
    rows: torch.Tensor,
    targets: torch.Tensor,
    distributions: torch.Tensor,
    ends: torch.Tensor,
    *,
    pixels: tuple[float, float],
    adam: tuple[float, float, float, float],
    steps: int,
    cancel: ctypes.c_int,
) -> float:
    """Train LeNet on a sequence of minibatches, in place; return the summed loss.

    Args:
        vector: Flat parameters, float32, updated.
        moments: Adam's two, as `vector`, updated.
        images: uint8 (n, 1, 28, 28).
        rows: Image of each sample in order of training, int64 (samples,).
        targets: Row of `distributions` for each of them, int64 (samples,).
        distributions: Target distributions, float32 (m, classes), classes at most 64.
        ends: Where each minibatch ends in `rows`, int64 (batches,).
        pixels: (scale, shift): pixel v becomes ``v * scale + shift``.
        adam: (learning rate, beta1, beta2, eps).
        steps: Adam steps taken before.
        cancel: Non-zero ends the call early.
    """
    classes = distributions.shape[1]
    assert classes <= _MAX_CLASSES
    arrays = (vector, *moments, images, rows, targets, distributions)
    assert all(a.is_contiguous() for a in (*arrays, ends))
    return TRAIN(
        *(a.data_ptr() for a in arrays), classes, ends.data_ptr(), len(ends), *pixels, *adam, steps,
        ctypes.byref(cancel),
    )  # fmt: skip


def lenet_logits(vector: torch.Tensor, images: torch.Tensor, classes: int) -> torch.Tensor:
    """Return what LeNet says, without a way back.

    Args:
        vector: Flat parameters, float32.
        images: Normalised, float32 (n, 1, 28, 28).
        classes: Number of classes, at most 64.

    Returns:
        float32 (n, classes).
    """
    assert classes <= _MAX_CLASSES
    images, logits = images.contiguous(), torch.empty(len(images), classes)
    _LOGITS(vector.data_ptr(), images.data_ptr(), len(images), classes, logits.data_ptr())
    return logits
