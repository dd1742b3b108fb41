"""From C++ to a function: compiled on first use by the machine's own compiler, then kept.

What is loaded can do anything that the user can. So the cache is a folder that nobody else can
write to, and a library's SHA-256 is a part of its file name: what was truncated, changed or put
there by others has another one, and is compiled again. One file says it all, so that processes that
compile at the same time cannot mix what they write.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fedlogit.engine.cpu import cpu_lines
from fedlogit.errors import FedlogitError, writing
from fedlogit.files import file_digest
from fedlogit.user_folders import cache_folder, is_own_file, private_folder

__all__ = ["Compiled", "compiled", "compiler_version", "load"]

# Without predictive commoning GCC spills sums that a kernel keeps in registers.
_FLAGS = (
    "-O3", "-march=native", "-std=c++17", "-fno-math-errno", "-fno-predictive-commoning",
    "-shared", "-fPIC",
)  # fmt: skip
_FOLDER = Path(__file__).parent
_CPU = ("flags", "Features", "CPU implementer", "CPU part")  # lines of an x86, and of an ARM
_REMEDY = "set XDG_CACHE_HOME to a folder of yours, or use engine = 'loop'"


@dataclass(frozen=True)
class Compiled:
    """A function of a C++ file, which is compiled and loaded when it is first called.

    Attributes:
        source: Name of the file, without its ending.
        name: Name of the function.
        arguments: Their types.
        result: Its type; None for void.
    """

    source: str
    name: str
    arguments: tuple[Any, ...]
    result: Any = None

    def __call__(self, *values: Any) -> Any:
        """Call the function.

        Raises:
            FedlogitError: as `load`.
        """
        return load(self)(*values)


@cache
def load(wanted: Compiled) -> ctypes._NamedFuncPointer:
    """Return a function that can be called.

    Raises:
        FedlogitError: as `compiled`, or if the library cannot be loaded.
    """
    path = compiled(wanted.source)
    try:
        function = getattr(ctypes.CDLL(str(path)), wanted.name)
    except OSError as error:  # a file system that is mounted noexec, for example
        raise FedlogitError(f"engine = 'native' cannot be loaded: {error}; {_REMEDY}") from None
    function.restype = wanted.result
    function.argtypes = list(wanted.arguments)
    return function


def compiled(name: str) -> Path:
    """Return the shared library, made if this source was not on this machine before.

    Raises:
        FedlogitError: if there is no compiler, it fails, or the cache cannot be written or is not
            the user's alone.
    """
    source, compiler = _FOLDER / f"{name}.cpp", _compiler()
    made_by = [*compiler, compiler_version(), *_FLAGS, platform.processor(), _cpu()]
    identity = " ".join(made_by).encode()
    sources = b"".join(path.read_bytes() for path in [source, *sorted(_FOLDER.glob("*.h"))])
    key = hashlib.sha256(sources + identity).hexdigest()[:16]
    folder = cache_folder(_REMEDY)
    private_folder(folder, _REMEDY)
    with writing(folder, _REMEDY):
        for path in sorted(folder.glob(f"{name}-{key}-*.so")):
            if is_own_file(path) and path == _named(folder, name, key, path):
                return path
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            made = Path(temporary) / f"{name}.so"
            _call([*compiler, *_FLAGS, str(source), "-o", str(made)])
            made.chmod(stat.S_IRWXU)
            return made.replace(_named(folder, name, key, made))


def compiler_version() -> str:
    """Return what the compiler says of itself; an upgrade leaves its path as it was.

    Raises:
        FedlogitError: if there is none, or it fails.
    """
    return (_call([*_compiler(), "--version"]).strip().splitlines() or [""])[0]


def _named(folder: Path, name: str, key: str, library: Path) -> Path:
    """Return where a library belongs, by its content."""
    return folder / f"{name}-{key}-{file_digest(library)}.so"


def _compiler() -> list[str]:
    """Return the command of ``CXX``, which may have arguments, or of the compiler that is found.

    Raises:
        FedlogitError: if there is none.
    """
    given = os.environ.get("CXX", "")
    try:
        command = shlex.split(given)
    except ValueError as error:
        raise FedlogitError(f"CXX = {given!r} is not a command: {error}") from None
    if command and not shutil.which(command[0]):
        raise FedlogitError(f"CXX = {given!r}: there is no program {command[0]!r}; unset CXX")
    found = shutil.which("g++") or shutil.which("clang++")
    if not command and not found:
        raise FedlogitError(
            "engine = 'native' needs a C++ compiler (apt-get install g++); or use engine = 'loop'"
        )
    return command or [str(found)]


def _call(command: Sequence[str]) -> str:
    """Call the compiler, and return what it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:  # a file that is no program
        raise FedlogitError(
            f"engine = 'native' cannot be compiled: {command[0]}: {error.strerror}"
        ) from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise FedlogitError(f"engine = 'native' cannot be compiled: {reason}")
    return done.stdout


def _cpu() -> str:
    """Return what `-march=native` depends on, since a cache may be shared between machines."""
    own = dict.fromkeys(line for line in cpu_lines() if line.startswith(_CPU))  # of each core
    return "\n".join(own) or platform.machine()
