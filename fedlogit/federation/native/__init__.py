"""Native kernels: a client's training stage in C++, for CPUs, by the setting ``kernel: native``.

The plain autograd loop is the reference. A kernel does the same steps in another order of
summation, so its numbers differ in the last bits; that is why it is part of a run's spec. Kernels
are compiled on first use with the machine's own C++ compiler, and refused in one line where that
cannot be had or they do not fit: they are never chosen, or left, silently.
"""

from __future__ import annotations

import torch

from fedlogit.errors import FedlogitError
from fedlogit.federation.native import lenet, mlp
from fedlogit.federation.native.compiler import load
from fedlogit.spec import RunSpec

__all__ = ["PERCEPTRONS", "check_native"]

PERCEPTRONS = ("mlp", "mlp_net", "mlp4w")


def check_native(spec: RunSpec, shape: tuple[int, ...], device: torch.device) -> None:
    """Refuse what the kernels do not do.

    Raises:
        FedlogitError: naming the first setting that does not fit, or the missing compiler.
    """
    names = {call.name for call in spec.models}
    perceptrons = names <= set(PERCEPTRONS)
    optimizer = spec.optimizer
    fits = {
        "models": (names == {"lenet"} or perceptrons, "lenet, or perceptrons such as mlp_net"),
        "dataset": (shape == (1, 28, 28) or perceptrons, "images of 28 x 28 x 1 for lenet"),
        "optimizer.name": (
            optimizer.name == ("sgd" if perceptrons else "adam"),
            "sgd for perceptrons" if perceptrons else "adam for lenet",
        ),
        "optimizer.momentum": (optimizer.momentum == 0, "0"),
        "optimizer.weight_decay": (optimizer.weight_decay == 0, "0"),
        "optimizer.clip": (optimizer.clip is None, "null"),
        "optimizer.scrub": (not optimizer.scrub, "false"),
        "augment": (spec.augment == "none", "none"),
        "precision": (spec.precision == "f32", "f32"),
        "device": (device.type == "cpu", "cpu"),
    }
    for key, (fit, wanted) in fits.items():
        if not fit:
            raise FedlogitError(
                f"kernel = 'native' needs {key} = {wanted}; or use kernel = 'autograd'"
            )
    module = mlp if perceptrons else lenet
    load(module.__name__.rsplit(".", 1)[-1], module.ARGUMENTS)
