"""Folders of one user: where a cache is kept, and those that nobody else can enter."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from fedlogit.errors import FedlogitError, writing

__all__ = ["cache_folder", "is_own_file", "private_folder"]

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder(hint: str) -> Path:
    """Return where this user's files are kept that can be made or fetched again; may be missing.

    XDG's specification ignores an ``XDG_CACHE_HOME`` that is empty or not absolute.

    Args:
        hint: What the error tells the user to do.

    Raises:
        FedlogitError: if neither XDG_CACHE_HOME nor HOME says where.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        root = given if given.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        raise FedlogitError(f"HOME is not set, below which the cache is kept: {hint}") from None
    return root / "fedlogit"


def private_folder(path: Path, hint: str) -> None:
    """Make a folder with mode 700, or check that this user owns the one there, and tighten it.

    Args:
        path: The folder. Others may share its parent, if that is sticky as ``/tmp`` is.
        hint: What errors tell the user to do.

    Raises:
        FedlogitError: if it is a link, belongs to another user, or others can write to it and its
            mode cannot be changed; or if it cannot be made.
    """
    with writing(path, hint):
        handle = _opened(path, hint)
    try:
        owner, user = os.fstat(handle).st_uid, os.geteuid()
        if owner != user:
            raise _refused(path, f"belongs to user {owner} and you are user {user}", hint)
        mode = _tightened(handle)
        if mode & _OTHERS_WRITE:
            raise _refused(path, f"has mode {mode:o}, which cannot be changed to 700", hint)
    finally:
        os.close(handle)


def _opened(path: Path, hint: str) -> int:
    """Return a handle of the folder, made where it is missing; of no folder that a link names."""
    while True:
        with suppress(FileExistsError):
            path.mkdir(stat.S_IRWXU, parents=True)
        try:
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # its last user removed it between our two steps
            continue
        except OSError:
            if path.is_symlink():
                raise _refused(path, "is a link", hint) from None
            raise


def _tightened(handle: int) -> int:
    """Return a folder's mode, changed to 700 where possible; some file systems know no modes."""
    if stat.S_IMODE(os.fstat(handle).st_mode) != stat.S_IRWXU:
        with suppress(OSError):
            os.fchmod(handle, stat.S_IRWXU)
    return stat.S_IMODE(os.fstat(handle).st_mode)


def _refused(path: Path, why: str, hint: str) -> FedlogitError:
    return FedlogitError(
        f"{path} {why}; it must be a folder of your own to which nobody else can write: {hint}"
    )


def is_own_file(path: Path) -> bool:
    """Return whether there is a regular file that this user owns and nobody else can write to."""
    try:
        about = path.lstat()
    except OSError:
        return False
    owned = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
    return owned and not about.st_mode & _OTHERS_WRITE
