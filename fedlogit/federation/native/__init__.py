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

__all__ = ["PERCEPTRONS", "check_fit", "check_native"]

PERCEPTRONS = ("mlp", "mlp_net", "mlp4w")
_PULLS = {"fedprox": "mu", "tally_train": "proximal"}
"""Methods with a proximal term, which the kernels lack, and the parameter that is its weight."""


def check_native(spec: RunSpec, shape: tuple[int, ...], device: torch.device) -> None:
    """Refuse what the kernels do not do, and compile the one that is needed.

    Raises:
        FedlogitError: naming the first setting that does not fit, or the missing compiler.
    """
    check_fit(spec, shape, device.type)
    module = mlp if _perceptrons(spec) else lenet
    load(module.__name__.rsplit(".", 1)[-1], module.ARGUMENTS)


def check_fit(spec: RunSpec, shape: tuple[int, ...], device: str) -> None:
    """Refuse a spec that the kernels do not do; a plan can ask, without a data set or a compiler.

    Args:
        spec: One with ``kernel: native``.
        shape: (channels, height, width) of a sample; () for a text.
        device: The type of device to train on, such as ``cpu``.

    Raises:
        FedlogitError: naming the first setting that does not fit.
    """
    names = {call.name for call in spec.models}
    perceptrons = _perceptrons(spec)
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
        "method": (
            not spec.method.params.get(_PULLS.get(spec.method.name, "")),
            "no proximal term",
        ),
        "precision": (spec.precision == "f32", "f32"),
        "device": (device == "cpu", "cpu or auto"),
    }
    for key, (fit, wanted) in fits.items():
        if not fit:
            raise FedlogitError(
                f"kernel = 'native' needs {key} = {wanted}; or use kernel = 'autograd'"
            )


def _perceptrons(spec: RunSpec) -> bool:
    """Return whether the kernel for perceptrons is the one that is needed."""
    return {call.name for call in spec.models} <= set(PERCEPTRONS)
