"""The native kernel: LeNet's training stage in C++, for CPUs, by the setting ``kernel: native``.

The plain autograd loop is the reference. This kernel does the same steps in another order of
summation, so its numbers differ in the last bits; that is why it is part of a run's spec. It is
compiled on first use with the machine's own C++ compiler, and refused in one line where it cannot
be had or does not fit: it is never chosen, or left, silently.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch

from fedlogit.errors import FedlogitError
from fedlogit.spec import RunSpec

__all__ = ["check_native", "train_lenet"]

_SOURCE = Path(__file__).with_name("lenet.cpp")
_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fno-math-errno", "-shared", "-fPIC")
_POINTERS, _INT64, _DOUBLE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
_MAX_CLASSES = 64


def check_native(spec: RunSpec, shape: tuple[int, int, int], device: torch.device) -> None:
    """Refuse what the kernel does not do.

    Raises:
        FedlogitError: naming the first setting that does not fit, or the missing compiler.
    """
    fits = {
        "models": ({call.name for call in spec.models} == {"lenet"}, "lenet"),
        "dataset": (shape == (1, 28, 28), "images of 28 x 28 x 1"),
        "optimizer.name": (spec.optimizer.name == "adam", "adam"),
        "optimizer.weight_decay": (spec.optimizer.weight_decay == 0, "0"),
        "augment": (spec.augment == "none", "none"),
        "precision": (spec.precision == "f32", "f32"),
        "device": (device.type == "cpu", "cpu"),
    }
    for key, (fit, wanted) in fits.items():
        if not fit:
            raise FedlogitError(
                f"kernel = 'native' needs {key} = {wanted}; or use kernel = 'autograd'"
            )
    _library()


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
    return _library()(
        *(a.data_ptr() for a in arrays), classes, ends.data_ptr(), len(ends), *pixels, *adam, steps,
        ctypes.byref(cancel),
    )  # fmt: skip


@cache
def _library() -> ctypes._NamedFuncPointer:
    """Return the compiled function, compiling it if this source was not on this machine before."""
    function = ctypes.CDLL(str(_compiled())).fedlogit_lenet
    function.restype = _DOUBLE
    function.argtypes = [
        *[_POINTERS] * 7, ctypes.c_int, _POINTERS, _INT64, ctypes.c_float, ctypes.c_float,
        *[_DOUBLE] * 4, _INT64, ctypes.POINTER(ctypes.c_int),
    ]  # fmt: skip
    return function


def _compiled() -> Path:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise FedlogitError(
            "kernel = 'native' needs a C++ compiler (apt-get install g++);"
            " or use kernel = 'autograd'"
        )
    identity = " ".join([compiler, *_FLAGS, platform.processor(), _cpu()]).encode()
    digest = hashlib.sha256(_SOURCE.read_bytes() + identity).hexdigest()[:16]
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    path = root / "fedlogit" / f"lenet-{digest}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / "lenet.so"
            command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["no message"])[0]
                raise FedlogitError(f"kernel = 'native' cannot be compiled: {reason}")
            made.replace(path)
    return path


def _cpu() -> str:
    """Return what `-march=native` depends on, since a cache may be shared between machines."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.machine()
    lines = path.read_text().splitlines()
    return next((line for line in lines if line.startswith("flags")), platform.machine())
