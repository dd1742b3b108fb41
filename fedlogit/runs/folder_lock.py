"""The lock of a job's folder: one process at a time makes what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fedlogit.locks import held
from fedlogit.runs import layout

__all__ = ["folder_lock"]


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold a folder while it is filled; wait if another process fills it.

    Raises:
        FedlogitError: if the folder cannot be written.
    """
    try:
        with held(folder / layout.LOCK, f"another process makes {folder}; waiting for it to end"):
            yield
    finally:
        with suppress(OSError):
            folder.rmdir()  # if it is empty, because nothing came of it
