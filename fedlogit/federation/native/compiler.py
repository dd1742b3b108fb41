"""From C++ to a function: compiled on first use by the machine's own compiler, then kept."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fedlogit.errors import FedlogitError

__all__ = ["compiled", "load"]

_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fno-math-errno", "-shared", "-fPIC")
_FOLDER = Path(__file__).parent


@cache
def load(name: str, arguments: Sequence[Any]) -> ctypes._NamedFuncPointer:
    """Return ``fedlogit_<name>`` of ``<name>.cpp``, which returns a double.

    Raises:
        FedlogitError: if there is no compiler, or it fails.
    """
    function = getattr(ctypes.CDLL(str(compiled(name))), f"fedlogit_{name}")
    function.restype = ctypes.c_double
    function.argtypes = list(arguments)
    return function


def compiled(name: str) -> Path:
    """Return the shared library, made if this source was not on this machine before."""
    source = _FOLDER / f"{name}.cpp"
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise FedlogitError(
            "kernel = 'native' needs a C++ compiler (apt-get install g++);"
            " or use kernel = 'autograd'"
        )
    identity = " ".join([compiler, *_FLAGS, platform.processor(), _cpu()]).encode()
    digest = hashlib.sha256(source.read_bytes() + identity).hexdigest()[:16]
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    path = root / "fedlogit" / f"{name}-{digest}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / f"{name}.so"
            command = [compiler, *_FLAGS, str(source), "-o", str(made)]
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
