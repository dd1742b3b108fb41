"""Members of archives, copied by name: no path of an archive is ever used as a path on disk."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from fedlogit.errors import DataError

__all__ = ["MEMBER_LIMIT", "take", "take_from_tar"]

MEMBER_LIMIT = 4 * 2**30  # bytes; the largest member that any source has is STL-10's, 2.8e9


def take(archive: Path, files: Mapping[str, str], folder: Path, where: str) -> None:
    """Copy members of a tar (compressed or not) or zip archive into `folder`.

    Args:
        archive: The file.
        files: Member's path in the archive, by the name that it gets in `folder`.
        folder: Where the members go.
        where: What errors call the archive.

    Raises:
        DataError: if it is damaged, has a path that climbs, or lacks a member.
    """
    with _damage(where):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                _take_from_zip(opened, files, folder, where)
        else:
            with archive.open("rb") as stream:
                take_from_tar(stream, files, folder, where)


def take_from_tar(stream: IO[bytes], files: Mapping[str, str], folder: Path, where: str) -> None:
    """Copy members of a tar stream into `folder`; arguments and errors as those of `take`."""
    wanted = {member: name for name, member in files.items()}
    with _damage(where), tarfile.open(fileobj=stream, mode="r|*") as opened:
        for entry in opened:
            path = _checked(entry.name, where)
            name = wanted.pop(path, None)
            if name is None:
                continue
            source = opened.extractfile(entry) if entry.isreg() else None
            if source is None:
                raise DataError(f"{where}: {path} is not a regular file")
            _copy(source, entry.size, folder / name, f"{where}: {path}")
    if wanted:
        raise DataError(f"{where} has no member {min(wanted)}")


def _take_from_zip(
    opened: zipfile.ZipFile, files: Mapping[str, str], folder: Path, where: str
) -> None:
    members = {_checked(info.filename, where): info for info in opened.infolist()}
    for name, path in files.items():
        if path not in members:
            raise DataError(f"{where} has no member {path}")
        with opened.open(members[path]) as source:
            _copy(source, members[path].file_size, folder / name, f"{where}: {path}")


def _checked(path: str, where: str) -> str:
    """Return a member's path in plain form; an archive that tries to climb is not to be used."""
    plain = PurePosixPath(path)
    if plain.is_absolute() or ".." in plain.parts:
        raise DataError(f"{where} has a member that climbs out of it: {path}")
    return str(plain)


def _copy(source: IO[bytes], size: int, path: Path, where: str) -> None:
    if size > MEMBER_LIMIT:
        raise DataError(f"{where} has {size} bytes, more than any known dataset")
    with path.open("wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
    if path.stat().st_size != size:
        raise DataError(f"{where} ends early")


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Turn what the archive readers raise on damage into one line."""
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        raise DataError(f"{where} is damaged: {error}") from None
    except (NotImplementedError, RuntimeError) as error:  # zip: unknown compression, encryption
        raise DataError(f"{where} cannot be read: {error}") from None
