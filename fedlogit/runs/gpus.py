"""Which GPU a run gets: Snakemake counts GPUs but hands none out, so runs take them by lock files.

There are as many lock files for each GPU as runs may share it. They are of one machine and one
Slurm job: Slurm gives each job GPUs of its own, and where it hides the others it numbers from 0.
They lie where all users may write, in a folder that must be this user's alone: nobody else can
hold its locks, or put a link in place of one.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from fedlogit.locks import first_free
from fedlogit.user_folders import private_folder

__all__ = ["own_gpu", "visible_gpus"]


@contextmanager
def own_gpu(device: str, runs_per_gpu: int) -> Iterator[None]:
    """Take a GPU that has room, and see no other until this ends; wait while all are taken.

    To be entered before CUDA is initialised. Does nothing for a device that says which one it is
    (``cpu``, ``cuda:1``), and where there is no GPU.

    Args:
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
        runs_per_gpu: How many runs may share a GPU.

    Raises:
        FedlogitError: if a lock file cannot be written, or their folder is another user's.
    """
    gpus = visible_gpus(os.environ)
    if device not in ("auto", "cuda") or not gpus:
        yield
        return
    folder = _folder()
    _private(folder)
    # The first place on every GPU comes before the second on any.
    places = {folder / f"{_plain(gpu)}.{i}.lock": gpu for i in range(runs_per_gpu) for gpu in gpus}
    waiting = f"waiting for a GPU: {', '.join(gpus)} taken, runs_per_gpu = {runs_per_gpu}"
    with _removed_when_empty(folder), first_free(list(places), waiting, _private) as place:
        if len(gpus) > 1:
            print(f"takes GPU {places[place]} of {', '.join(gpus)}", file=sys.stderr, flush=True)  # noqa: T201
        with _seeing(places[place]):
            yield


@contextmanager
def _seeing(gpus: str) -> Iterator[None]:
    """Let this process and those it starts see these GPUs only; afterwards what they saw before."""
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


def _private(folder: Path) -> None:
    private_folder(folder, "remove it, or set TMPDIR to a folder of yours")


@contextmanager
def _removed_when_empty(folder: Path) -> Iterator[None]:
    """Remove a folder of locks afterwards, if nobody has one in it; who comes makes it anew."""
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


def visible_gpus(environment: Mapping[str, str], dev: Path = Path("/dev")) -> list[str]:
    """Return the GPUs that a process may use, as ``CUDA_VISIBLE_DEVICES`` would name them.

    Args:
        environment: What the process was started with.
        dev: Where the system keeps its devices, ``nvidia0``, ``nvidia1``, …
    """
    if "CUDA_VISIBLE_DEVICES" in environment:
        named = environment["CUDA_VISIBLE_DEVICES"].split(",")
        known = (name.strip() for name in named)
        shown = takewhile(lambda name: not name.startswith("-"), known)  # as CUDA reads it
        return [name for name in shown if name]
    found = (re.fullmatch(r"nvidia(\d+)", path.name) for path in dev.glob("nvidia*"))
    return [str(n) for n in sorted(int(match[1]) for match in found if match)]


def _plain(name: str) -> str:
    """Return a variable's value as part of a file's name, which leads to no other folder."""
    return re.sub(r"[^\w-]", "_", name)


def _folder() -> Path:
    job = _plain(os.environ.get("SLURM_JOB_ID", ""))
    return Path(tempfile.gettempdir()) / f"fedlogit-gpus-{os.geteuid()}{'-' * bool(job)}{job}"
