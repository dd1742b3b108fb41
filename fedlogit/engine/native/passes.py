"""Networks whose passes are compiled, each as one operation of autograd."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedlogit.engine.native.compiler import Compiled
from fedlogit.models.cnn import TfCnnNetwork
from fedlogit.models.lenet import LenetBnNetwork, LenetNetwork, LenetTanhNetwork

__all__ = ["LENET", "LENET_BN", "LENET_TANH", "TF_CNN", "Passes"]

_POINTER, _INT, _INT64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_SIZES = (_INT64, *[_INT] * 4)  # samples, channels, height, width, classes


class Passes:
    """The passes of a network: the functions of the C++ file with a model's name.

    Attributes:
        model: The architecture's name in `fedlogit.models`.
        network: Its class.
        smallest: The fewest images that it takes at a time.
    """

    def __init__(self, model: str, network: type[nn.Module], smallest: int = 1) -> None:
        """Take the functions of a file, which is compiled when one of them is first called."""
        self.model, self.network, self.smallest = model, network, smallest
        name = f"fedlogit_{model}"
        self.kept = Compiled(model, f"{name}_kept", _SIZES, _INT64)
        self.forward = Compiled(
            model, f"{name}_forward", (_POINTER, _POINTER, *_SIZES, _POINTER, _POINTER)
        )
        self.backward = Compiled(model, f"{name}_backward", (_POINTER, *_SIZES, *[_POINTER] * 3))

    def logits(self, vector: torch.Tensor, images: torch.Tensor, classes: int) -> torch.Tensor:
        """Return the network's logits; their gradient is that of the parameters.

        Args:
            vector: Flat parameters in PyTorch's order, float32.
            images: Normalised, float32 (n, channels, height, width), n at least `smallest`.
            classes: Number of classes.

        Returns:
            float32 (n, classes).
        """
        if torch.is_grad_enabled():
            return _Logits.apply(vector, images.contiguous(), classes, self)
        return self._logits(vector, images.contiguous(), classes, None)

    def _logits(
        self, vector: torch.Tensor, images: torch.Tensor, classes: int, kept: torch.Tensor | None
    ) -> torch.Tensor:
        logits = torch.empty(len(images), classes)
        self.forward(
            vector.data_ptr(), images.data_ptr(), *images.shape, classes,
            logits.data_ptr(), None if kept is None else kept.data_ptr(),
        )  # fmt: skip
        return logits


class _Logits(torch.autograd.Function):
    """Logits of a minibatch, with the activations that the backward pass needs."""

    @staticmethod
    def forward(
        ctx: Any, vector: torch.Tensor, images: torch.Tensor, classes: int, passes: Passes
    ) -> torch.Tensor:
        ctx.passes, ctx.sizes = passes, (*images.shape, classes)
        kept = torch.empty(passes.kept(*ctx.sizes))
        ctx.save_for_backward(vector, kept)
        return passes._logits(vector, images, classes, kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        vector, kept = ctx.saved_tensors
        grad = grad.contiguous()  # by name: a copy must outlive the call
        found = torch.zeros_like(vector)
        ctx.passes.backward(
            vector.data_ptr(), *ctx.sizes,
            kept.data_ptr(), grad.data_ptr(), found.data_ptr(),
        )  # fmt: skip
        return found, None, None, None


LENET = Passes("lenet", LenetNetwork)
"""Of images with height and width of at least 12."""
LENET_TANH = Passes("lenet_tanh", LenetTanhNetwork)
"""Of images with height and width of at least 12."""
TF_CNN = Passes("tf_cnn", TfCnnNetwork)
"""Of images with height and width of at least 18."""
LENET_BN = Passes("lenet_bn", LenetBnNetwork, smallest=2)
"""Of two images or more: one has no statistics, and PyTorch refuses to normalise it."""
