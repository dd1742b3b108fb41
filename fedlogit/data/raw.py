"""Raw files as a source gave them; wanted members are read from archives without unpacking them.

Nothing is extracted to disk: a member is found by the last part of its name, and only regular files
count. An archive with a path that leads out of a folder is nobody's honest archive, and is refused.
Nothing is unpacked beyond a limit, whatever sizes an archive declares.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, Self, TypeVar

from fedlogit.errors import DataError
from fedlogit.files import LIMIT, check_packing

__all__ = ["BROKEN", "MARK", "BoundedHeader", "Raw", "check_inside"]

MARK = "source.json"  # written last: a raw folder without it is incomplete
_BLOCK = 1 << 20  # bytes read at once
_NAME = 1 << 16  # bytes of a member's long name or further attributes, which `tarfile` reads whole
# How to open them; of other compressions `tarfile` would unpack ten kilobytes at once, unbounded.
_TAR = {".tar": "r|", ".tgz": "r|gz", ".tar.gz": "r|gz"}
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE,
         tarfile.SOLARIS_XHDTYPE)  # fmt: skip
_ZIP = (".zip",)
BROKEN = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
          tarfile.TarError, RuntimeError)  # fmt: skip
T = TypeVar("T")


class Raw:
    """The files of one raw folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def files(self) -> list[Path]:
        """Return the files, without `MARK`, sorted by name."""
        found = (path for path in self.folder.iterdir() if path.is_file() and path.name != MARK)
        return sorted(found)

    def read(self, names: Sequence[str], limit: int = LIMIT) -> dict[str, bytes]:
        """Return the content of each named file or archive member; ``.gz`` is unpacked.

        Args:
            names: Names of files or of members.
            limit: Bytes that all may have together.

        Raises:
            DataError: if one is missing or damaged, or they have more bytes than that.
        """
        left = limit

        def content(stream: IO[bytes]) -> bytes:
            nonlocal left
            found = _content(stream, left)
            if found is None:
                raise DataError(f"{', '.join(names)} unpack to more than {limit:,} bytes")
            left -= len(found)
            return found

        return self.scan(names, content)

    def scan(self, names: Sequence[str], reader: Callable[[IO[bytes]], T]) -> dict[str, T]:
        """Return ``reader(stream)`` for each named file or archive member, in one pass.

        Raises:
            DataError: if one is missing or damaged.
        """
        found: dict[str, T] = {}
        for path in self.files():
            try:
                for member, stream in _members(path):
                    name = member if member in names else member.removesuffix(".gz")
                    if name in names and name not in found:
                        found[name] = reader(_plain(member, name, stream))
            except DataError:
                raise
            except BROKEN as error:
                raise DataError(
                    f"{path.name} is damaged: {error or type(error).__name__}"
                ) from None
        missing = [name for name in names if name not in found]
        if missing:
            raise DataError(f"{', '.join(missing)} not in {_listing(self.files())}")
        return found


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (last part of the name, stream) of each regular file in an archive, or of the file."""
    tar = next((mode for suffix, mode in _TAR.items() if path.name.endswith(suffix)), None)
    if tar:
        with tarfile.open(path, tar, tarinfo=BoundedHeader) as archive:  # type: ignore[call-overload]
            for info in archive:
                check_inside(path, info.name)
                stream = archive.extractfile(info) if info.isreg() else None
                if stream is not None:
                    yield PurePosixPath(info.name).name, stream
    elif path.name.endswith(_ZIP):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                check_inside(path, entry.filename)
                check_packing(path, entry)
                with archive.open(entry) as stream:
                    yield PurePosixPath(entry.filename).name, stream
    else:
        with path.open("rb") as file:
            yield path.name, file


class BoundedHeader(tarfile.TarInfo):
    """A header of a tar archive, refused if `tarfile` would read unbounded what comes after it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header of 512 bytes.

        Raises:
            ReadError: if it announces a sparse file, or a name or attributes longer than `_NAME`.
        """
        header = super().frombuf(buf, encoding, errors)
        if header.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError(f"its member {header.name!r} is sparse")
        if header.type in _LONG and header.size > _NAME:
            raise tarfile.ReadError(f"it has a name or attributes of {header.size:,} bytes")
        return header

    def _refuse_sparse(self, *_: Any) -> None:
        raise tarfile.ReadError(f"its member {self.name!r} is sparse")

    # What `tarfile` calls where attributes say so, and what reads numbers without a bound.
    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


def check_inside(path: Path, member: str) -> None:
    """Refuse a member whose path is absolute or climbs, as a path of POSIX or of Windows."""
    for kind in (PurePosixPath, PureWindowsPath):
        if kind(member).root or kind(member).drive or ".." in kind(member).parts:
            raise DataError(f"{path.name} is refused: its member {member!r} leads out of a folder")


def _plain(member: str, name: str, stream: IO[bytes]) -> IO[bytes]:
    return stream if member == name else gzip.open(stream)  # type: ignore[return-value]


def _content(stream: IO[bytes], limit: int) -> bytes | None:
    """Return what a stream holds, or None as soon as that is more than `limit` bytes."""
    content = io.BytesIO()
    while block := stream.read(_BLOCK):
        if content.tell() + len(block) > limit:
            return None
        content.write(block)
    return content.getvalue()


def _listing(files: list[Path]) -> str:
    return ", ".join(path.name for path in files) or "an empty folder"
