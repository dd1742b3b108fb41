"""Locks between processes: files that the kernel unlocks when their holder ends, in any way."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fedlogit.errors import FedlogitError

__all__ = ["first_free", "held"]

_POLL = 0.5  # seconds between attempts


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def held(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock file at `path`; wait for it if another process does.

    Args:
        path: The lock file, made where it is missing and removed when it is let go.
        waiting: What to tell a user who has to wait.

    Raises:
        FedlogitError: if the file cannot be written.
    """
    with first_free([path], waiting):
        yield


@contextmanager
def first_free(
    paths: Sequence[Path], waiting: str, make: Callable[[Path], None] = _make
) -> Iterator[Path]:
    """Hold the first lock file that nobody holds; wait until there is one, and yield its path.

    Args:
        paths: Lock files, the preferred first.
        waiting: What to tell a user who has to wait.
        make: Makes the folder of a lock file before each attempt, if it is not there.

    Raises:
        FedlogitError: if a file cannot be written or is a link.
    """
    told = False
    while True:
        for path in paths:
            handle = _try(path, make)
            if handle is not None:
                try:
                    yield path
                finally:
                    with suppress(OSError):
                        path.unlink()  # while it is held, so that nobody's new lock is removed
                    os.close(handle)
                return
        if not told:
            print(waiting, file=sys.stderr, flush=True)  # noqa: T201
            told = True
        time.sleep(_POLL)


def _try(path: Path, make: Callable[[Path], None]) -> int | None:
    """Return a handle that holds the lock, or None if another process does."""
    try:
        make(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:  # its last user removed the empty folder between our two steps
        return None
    except OSError as error:
        reason = "it is a link" if path.is_symlink() else error.strerror
        raise FedlogitError(f"cannot write {path}: {reason}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever held it before may have removed the file between our two steps.
        if _is_at(handle, path):
            return handle
    except BlockingIOError:
        pass
    except OSError as error:
        os.close(handle)
        raise FedlogitError(
            f"cannot lock {path}: {error.strerror}; its file system must support locks"
        ) from None
    os.close(handle)
    return None


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
