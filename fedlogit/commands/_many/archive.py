"""An archive of files that another machine made: taken only if every byte is as it was packed.

It is a ``.tar.gz`` whose first member, ``manifest.json``, lists the others with sizes and digests.
Nothing in it is executed or unpickled, and nothing is written before its size is known.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import Field

import fedlogit
from fedlogit.data.raw import BROKEN, BoundedHeader, check_inside
from fedlogit.errors import DataError, FedlogitError, reading
from fedlogit.files import LIMIT, file_digest, is_plain_name, write_atomic
from fedlogit.frozen_config import FrozenConfig

__all__ = ["Manifest", "kind_of", "pack", "unpack"]

_MANIFEST = "manifest.json"
_LARGEST = 1 << 24  # bytes of a manifest: some hundred thousand files
_LARGEST_TEXT = 1 << 24  # of any JSON or CSV, which takes far more once read; ours have 4e5 at most
_BLOCK = 1 << 20


class Entry(FrozenConfig):
    """A file: its bytes, and their SHA-256."""

    size: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Manifest(FrozenConfig):
    """What an archive holds.

    Attributes:
        kind: ``runs`` that have finished, or the ``inputs`` of runs to be made.
        made_by: Version of the library.
        files: All other members, by name.
    """

    format: Literal[1] = 1
    kind: Literal["runs", "inputs"]
    made_by: str
    files: dict[str, Entry]


def pack(path: Path, kind: Literal["runs", "inputs"], files: Mapping[str, Path]) -> None:
    """Write an archive; its bytes depend only on the files and on the library's version.

    Args:
        path: The archive.
        kind: What it holds.
        files: Each member's file, by the member's name.

    Raises:
        FedlogitError: if it cannot be written, or a file cannot be read.
    """
    listed = {name: _entry(file) for name, file in sorted(files.items())}
    about = Manifest(kind=kind, made_by=fedlogit.__version__, files=listed)
    listing = json.dumps(about.model_dump(mode="json"), indent=1).encode()
    with (
        write_atomic(path) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _add(archive, _MANIFEST, len(listing), io.BytesIO(listing))
        for name, entry in about.files.items():
            with files[name].open("rb") as file:
                _add(archive, name, entry.size, file)


def _entry(path: Path) -> Entry:
    with reading(path):
        return Entry(size=path.stat().st_size, sha256=file_digest(path))


def _add(archive: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    header = tarfile.TarInfo(name)
    header.size = size
    archive.addfile(header, content)


def unpack(path: Path, folder: Path, limit: int = LIMIT) -> Manifest:
    """Write an archive's files below an empty folder, each checked, and return what it holds.

    Args:
        path: The archive.
        folder: Where to write.
        limit: Bytes that all files may have together.

    Raises:
        FedlogitError: if it is not such an archive, is damaged or cut off, holds anything but the
            regular files that it lists, would unpack to more than the limit, or has JSON or CSV
            that would fill the memory when it is read.
    """
    with _opened(path) as members:
        about = _read_manifest(path, members, limit)
        missing = dict(about.files)
        for name, stream in members:
            if name not in missing:
                raise DataError(
                    f"{path} is refused: its member {name!r} is given twice or not listed"
                )
            _extract(path, name, missing.pop(name), stream, folder)
    if missing:
        raise DataError(f"{path} is cut off: {min(missing)} is missing")
    return about


def kind_of(path: Path) -> str:
    """Return what an archive holds: ``runs`` or ``inputs``.

    Raises:
        FedlogitError: as `unpack`.
    """
    with _opened(path) as members:
        return _read_manifest(path, members, LIMIT).kind


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Yield the members of an archive; what is wrong with it becomes one line."""
    try:
        with tarfile.open(path, "r|gz", tarinfo=BoundedHeader) as archive:
            yield _members(path, archive)
    except FedlogitError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; give an archive, a .tar.gz") from None
    except BROKEN as error:
        raise DataError(f"{path} is damaged: {error or type(error).__name__}") from None


def _members(path: Path, archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and the content of each member, all of which must be regular files inside."""
    for info in archive:
        check_inside(path, info.name)
        stream = archive.extractfile(info) if info.isreg() else None
        if stream is None:
            raise DataError(f"{path} is refused: its member {info.name!r} is not a regular file")
        _check_plain(path, info.name)
        yield info.name, stream


def _check_plain(path: Path, name: str) -> None:
    """Refuse a name that is hidden, or that no line of a message should have."""
    parts = name.split("/")
    if any(not is_plain_name(part) or part[0] == "." or "\\" in part for part in parts):
        raise DataError(f"{path} is refused: its member {name!r} has no plain name")


def _read_manifest(path: Path, members: Iterator[tuple[str, IO[bytes]]], limit: int) -> Manifest:
    name, stream = next(members, ("", io.BytesIO()))
    listing = stream.read(_LARGEST + 1)
    if name != _MANIFEST or len(listing) > _LARGEST:
        raise DataError(f"{path} is not an archive of train_many or bundle: it has no {_MANIFEST}")
    try:
        data = json.loads(listing)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: {_MANIFEST} is not valid JSON: {error}") from None
    files = data.get("files") if isinstance(data, dict) else None
    for listed in files if isinstance(files, dict) else ():
        _check_plain(path, listed)
    about = Manifest.read(data, f"{path}: {_MANIFEST}")
    _check_sizes(path, about, limit)
    return about


def _check_sizes(path: Path, about: Manifest, limit: int) -> None:
    """Refuse what would fill the disk, or the memory of who reads it."""
    total = sum(entry.size for entry in about.files.values())
    if total > limit:
        raise DataError(
            f"{path} is refused: it unpacks to {total:,} bytes; at most {limit:,} are taken"
        )
    for listed, entry in about.files.items():
        if listed.endswith((".json", ".csv")) and entry.size > _LARGEST_TEXT:
            raise DataError(
                f"{path} is refused: its member {listed!r} has {entry.size:,} bytes; of JSON and"
                f" CSV at most {_LARGEST_TEXT:,} are taken"
            )


def _extract(path: Path, name: str, entry: Entry, stream: IO[bytes], folder: Path) -> None:
    """Write one file, of which no more is read than the manifest says."""
    with write_atomic(folder / name) as temporary:
        left = entry.size
        with temporary.open("wb") as file:
            while block := stream.read(min(_BLOCK, left + 1)):
                left -= len(block)
                if left < 0:
                    break
                file.write(block)
        if left or file_digest(temporary) != entry.sha256:
            raise DataError(f"{path} is damaged: {name} is not what {_MANIFEST} says")
