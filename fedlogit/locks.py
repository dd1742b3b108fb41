"""Locks between processes: files that the system unlocks when their holder ends, in any way.

`filelock` locks one file. What it leaves to its callers is here: to take the first of several files
that is free, to print once that a process waits, and to remove the file of a released lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

from fedlogit.errors import FedlogitError, writing

__all__ = ["first_free", "held", "is_held", "remove_unheld"]

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
    announced = False
    while True:
        for path in paths:
            if lock := _acquired(path, make):
                try:
                    yield path
                finally:
                    with suppress(OSError):
                        # While it is held, so that nobody's new lock is removed. Who has opened
                        # the file but not locked it yet tries again, as filelock sees that it went.
                        path.unlink()
                    lock.release()
                return
        if not announced:
            print(waiting, file=sys.stderr, flush=True)  # noqa: T201
            announced = True
        time.sleep(_POLL)


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock file at `path` at this moment; nothing is made.

    A file that cannot be locked counts as free: whoever then takes it is told why.
    """
    try:
        with path.open("rb") as file:  # unlike filelock, which makes a file that has just gone
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def remove_unheld(path: Path) -> None:
    """Remove the lock file of a process that was killed; leave one that is held, or not ours."""
    try:
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Not the next one's, who made the file anew after its last holder had removed it.
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                path.unlink()
    except OSError:
        return


def _acquired(path: Path, make: Callable[[Path], None]) -> FileLock | None:
    """Return a lock that is held, or None if another process holds it."""
    lock = FileLock(path, mode=0o600)
    with writing(path):
        make(path.parent)
    try:
        if path.is_symlink():
            raise FedlogitError(f"cannot write {path}: it is a link")
        with warnings.catch_warnings(action="ignore"):  # of the fallback, refused below
            lock.acquire(blocking=False)
    except Timeout:
        return None
    except FileNotFoundError:  # its last user removed the empty folder between our two steps
        return None
    except NotImplementedError:
        raise _unlockable(path, errno.ENOSYS) from None
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise _unlockable(path, error.errno) from None
        raise FedlogitError(f"cannot write {path}: {error.strerror}") from None
    if isinstance(lock, SoftFileLock):  # the file's existence alone, which outlives a process
        lock.release()
        raise _unlockable(path, errno.ENOSYS)
    return lock


def _unlockable(path: Path, code: int) -> FedlogitError:
    return FedlogitError(
        f"cannot lock {path}: {os.strerror(code)}; its file system must support locks"
    )
