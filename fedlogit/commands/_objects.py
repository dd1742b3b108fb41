"""Runs put into their folders from DVC's objects, each of which is asked for once.

`dvc fetch` and `dvc checkout` compare every file with every output: minutes for a list of thousands
of runs. The parts of DVC that they are made of (remotes, the cache, lists of files) need not.
"""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import copyfile, rmtree

from dvc.exceptions import DvcException
from dvc.fs.callbacks import TqdmCallback
from dvc.repo import Repo
from dvc_data.hashfile.hash_info import HashInfo
from dvc_data.hashfile.tree import Tree
from dvc_objects.errors import ObjectFormatError
from tqdm import tqdm

from fedlogit.commands._cache import is_here, remove_temporary
from fedlogit.errors import FedlogitError
from fedlogit.files import is_plain_name

__all__ = ["put_in_place"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, *_FULL)
_DIGEST = re.compile("[0-9a-f]{32}")


def _printable(name: str) -> str:
    """Return a name as it is if it fits a line, else shortened and with its odd characters told."""
    short = name if len(name) <= 160 else f"{name[:160]}…"
    return short if short.isprintable() else ascii(short)


def put_in_place(runs: Path, wanted: Mapping[str, str], remote: str | None) -> dict[str, str]:
    """Fetch runs and put each one that can be had, whole, into its folder.

    A folder that a job has begun meanwhile stays as it is.

    Args:
        runs: The folder of all runs.
        wanted: For each run, the digest of the list of its files.
        remote: A remote of DVC; None is the default one.

    Returns:
        For each run that could not be fetched, the reason.

    Raises:
        FedlogitError: if nothing can be written here.
    """
    try:
        with Repo() as repo, repo.lock:
            return _put_in_place(runs, wanted, _Objects(repo, remote))
    except (DvcException, OSError, FedlogitError) as error:  # it is the same for all
        if isinstance(error, OSError) and error.errno in _NOT_WRITABLE:
            where = error.filename or ".dvc"  # DVC's own files, where the system names none
            raise FedlogitError(f"cannot write {where}: {error.strerror}") from error
        return {run: str(error) for run in wanted if not (runs / run).is_dir()}


def _put_in_place(runs: Path, wanted: Mapping[str, str], objects: _Objects) -> dict[str, str]:
    objects.fetch(wanted.values(), "lists of files")
    trees, reasons = {}, {}
    for run, digest in wanted.items():
        try:
            trees[run] = objects.tree(digest)
        except FedlogitError as error:
            reasons[run] = str(error)
    objects.fetch((oid.value for tree in trees.values() for _, _, oid in tree), "files")
    with _temporary_folder(runs) as aside:
        for run, tree in tqdm(trees.items(), "Runs put in place", unit="run", disable=None):
            try:
                objects.place(tree, aside / "run")
                (runs / run).parent.mkdir(parents=True, exist_ok=True)
                (aside / "run").replace(runs / run)  # an empty folder there gives way
            except FedlogitError as error:
                reasons[run] = str(error)
            except OSError as error:
                if error.errno in _FULL:
                    raise OSError(error.errno, error.strerror, str(runs / run)) from error
                why = f"it cannot be written: {error.strerror or error}"
                reasons[run] = "is here now; it stays" if is_here(runs / run) else why
    return reasons


@contextmanager
def _temporary_folder(runs: Path) -> Iterator[Path]:
    """Yield a folder from which a run is moved when it is whole; what was killed left one."""
    folder = runs / ".pull"
    rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)


class _Objects:
    """The files that a remote and DVC's cache here have, by digest.

    DVC takes an object of its cache for what its name says, whatever a disk made of it since.
    """

    def __init__(self, repo: Repo, remote: str | None) -> None:
        self._name = remote or repo.config["core"].get("remote")
        self._remote = repo.cloud.get_remote_odb(remote, "fetch")
        self._cache = repo.cache.local
        self._root = repo.root_dir
        self._failed: dict[str, BaseException] = {}

    def fetch(self, digests: Iterable[str], what: str) -> None:
        """Copy those into the cache that it lacks, or has damaged, and the remote has whole.

        Raises:
            FedlogitError: if the first cannot be fetched, although the remote may have it.
        """
        lacking = sorted({digest for digest in digests if not self._has(digest)})
        # What stops the first would stop thousands of others, each after its own tries.
        self._fetch(lacking[:1], what)
        error = self._failed.get(lacking[0]) if lacking else None
        if error and not isinstance(error, FileNotFoundError):
            where = f"remote {self._name} ({self._remote.path})"
            raise FedlogitError(f"nothing could be fetched from {where}: {error}") from error
        self._fetch(lacking[1:], what)

    def _has(self, digest: str) -> bool:
        """Return whether the cache has an object whole; one that is damaged is removed."""
        path = Path(self._cache.oid_to_path(digest))
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False))
        except FileNotFoundError:
            return False
        if found.hexdigest() == digest.removesuffix(".dir"):
            return True
        path.unlink()
        return False

    def _fetch(self, digests: list[str], what: str) -> None:
        paths = [self._remote.oid_to_path(digest) for digest in digests]
        with TqdmCallback(desc=f"Fetching {what}", unit="file", size=len(digests)) as bar:
            self._cache.add(
                paths, self._remote.fs, digests,
                callback=bar, on_error=self._failed.__setitem__, verify=True,
            )  # fmt: skip
        self._check_disk()

    def _check_disk(self) -> None:
        """Stop where the disk is full: every other file would fail alike.

        Raises:
            OSError: naming the cache.
        """
        for error in self._failed.values():
            if isinstance(error, OSError) and error.errno in _FULL:
                folder = Path(self._cache.path)
                if folder.is_relative_to(self._root):  # and no other project writes there
                    remove_temporary(folder)
                raise OSError(error.errno, error.strerror, str(folder)) from error

    def tree(self, digest: str) -> Tree:
        """Return a list of files.

        Raises:
            FedlogitError: if it could not be fetched or is none, or names a file outside of its
                folder, or what is no digest, which would be a path outside of the cache.
        """
        self._check(digest, "the list of its files")
        try:
            tree = Tree.load(self._cache, HashInfo("md5", digest))
        except (ObjectFormatError, LookupError, TypeError, ValueError, AttributeError):
            raise FedlogitError(f"the list of its files is none ({digest})") from None
        for key, _, oid in tree:
            if not all(map(is_plain_name, key)) or not _DIGEST.fullmatch(str(oid.value)):
                named = f"{_printable('/'.join(key))}, {oid.value}"
                raise FedlogitError(f"the list of its files names {named} ({digest})")
        return tree

    def place(self, tree: Tree, folder: Path) -> None:
        """Copy a list's files into a folder.

        Raises:
            FedlogitError: if a file could not be fetched.
        """
        rmtree(folder, ignore_errors=True)
        for key, _, oid in tree:
            self._check(oid.value, "/".join(key))
            target = folder.joinpath(*key)
            target.parent.mkdir(parents=True, exist_ok=True)
            copyfile(self._cache.oid_to_path(oid.value), target)

    def _check(self, digest: str, what: str) -> None:
        if self._cache.exists(digest):
            return
        error = self._failed.get(digest)
        if isinstance(error, FileNotFoundError):
            raise FedlogitError(
                f"remote {self._name} has no {what.removeprefix('the ')} ({digest})"
            )
        why = f"could not be fetched: {error}" if error else f"is damaged in remote {self._name}"
        raise FedlogitError(f"{what} {why} ({digest})")
