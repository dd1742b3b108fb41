"""Getting files: over HTTP with a progress bar, or through a package registry's own client."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import IO

from tqdm import tqdm

from fedlogit.errors import DataError
from fedlogit.files import LIMIT

__all__ = ["TIMEOUT", "client", "get"]

TIMEOUT = 5  # seconds for an address to answer, and for each read
_CLIENT = 1200  # seconds for a client
_BLOCK = 1 << 18


def get(url: str, path: Path) -> None:
    """Download a file.

    Raises:
        DataError: if the address does not answer, or the file arrives incomplete or has no end.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "fedlogit"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            size = int(answer.headers.get("Content-Length") or 0)
            with path.open("wb") as file:
                received = _copy(answer, file, size, path.name)
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"{url}: {getattr(reason, 'strerror', None) or reason}") from None
    if size and received != size:
        raise DataError(f"{url}: {received} of {size} bytes arrived")


def _copy(answer: IO[bytes], file: IO[bytes], size: int, name: str) -> int:
    # disable=None: no bar where the output is a log file
    with tqdm(total=size or None, unit="B", unit_scale=True, desc=name, disable=None) as bar:
        while block := answer.read(_BLOCK):
            file.write(block)
            if file.tell() > LIMIT:
                raise ValueError(f"more than {LIMIT:,} bytes arrived")
            bar.update(len(block))
        return file.tell()


def client(command: Sequence[str], folder: Path, output: IO[bytes] | None = None) -> None:
    """Run a registry's client in `folder`; its output goes to `output` or nowhere.

    Raises:
        DataError: if it is not installed, fails, or takes too long.
    """
    if shutil.which(command[0]) is None:
        raise DataError(f"{command[0]} is not installed")
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=_CLIENT)
        except BaseException as error:  # Ctrl-C too: the client's children must not outlive it
            with suppress(ProcessLookupError):  # they have ended: that may not replace Ctrl-C
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise DataError(f"{command[0]} took more than {_CLIENT} s") from None
            raise
    if process.returncode:
        raise DataError(f"{' '.join(_words(command))} failed: {_reason(errors)}")


def _words(command: Sequence[str]) -> list[str]:
    return [word for word in command if not word.startswith("-")]


def _reason(errors: bytes) -> str:
    """Return the first line of what a client said that reads like an error."""
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    marked = [line for line in lines if line.lower().startswith(("e:", "npm error", "npm err"))]
    return (marked or lines or ["no message"])[0][:200]
