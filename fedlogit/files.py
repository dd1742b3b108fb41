"""Files: written under a temporary name and renamed, read without unpickling, with digests."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from fedlogit.errors import DataError, reading, writing

__all__ = [
    "LIMIT",
    "array_digest",
    "arrays_digest",
    "canonical_json",
    "check_packing",
    "file_digest",
    "is_plain_name",
    "json_digest",
    "link_or_copy",
    "load_npz",
    "read_json",
    "read_sealed",
    "read_text",
    "remove_leftovers",
    "remove_leftovers_of",
    "save_npz",
    "write_atomic",
    "write_json",
    "write_sealed",
]

LIMIT = 4 << 30
"""Bytes that an archive may unpack to where nothing says how many it should: far more than a run
writes, and than the largest data set has (Fed-ISIC2019, 3.5e9)."""

LARGEST_JSON = 1 << 26
"""Bytes of JSON that are read at most: Python makes objects of it that take forty times as many.
The record of a run with 5,000 clients and 1,000 classes has 5e7."""

_OF_SAFETENSORS = r"\.tmp[A-Za-z0-9]{6}"  # its own, before it renames to the name it was given


@contextmanager
def write_atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` on success, remove it on failure.

    What processes that were killed left of the same file is removed first.

    Raises:
        FedlogitError: if the folder cannot be written or the disk is full.
    """
    path = Path(path)
    temporary = _temporary_name(path)
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(path)
            with _locked(temporary):
                yield temporary
                _sync(temporary)
                temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _temporary_name(path: Path) -> Path:
    """Return a name beside `path` that no other process uses and `remove_leftovers` knows.

    The process's number alone would not do: containers on a shared file system may have the same.
    """
    unique = f"{os.getpid()}{secrets.randbelow(10**6)}"
    return path.with_name(f".{path.stem}.{unique}{path.suffix}")


@contextmanager
def _locked(temporary: Path) -> Iterator[None]:
    """Make an empty file and hold its lock, which tells it from what a killed process left."""
    file = temporary.open("wb")
    try:
        with suppress(OSError):  # a file system without locks, where nobody removes leftovers
            fcntl.flock(file, fcntl.LOCK_EX)
            while not temporary.exists():  # somebody found it before it was locked
                file.close()
                file = temporary.open("wb")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        file.close()


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files of `path` whose writers were killed: nobody holds their locks.

    Not those of a ``.safetensors``, whose library replaces the file that was locked by one of its
    own. `remove_leftovers` removes these.
    """
    if path.suffix == ".safetensors":
        return
    for name in _names_matching(path.parent, _temporary_names(path)):
        with suppress(OSError), path.with_name(name).open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.with_name(name).unlink()


def _temporary_names(path: Path) -> str:
    """Return a regular expression for the names that `_temporary_name` gives."""
    return rf"\.{re.escape(path.stem)}\.\d+{re.escape(path.suffix)}"


def _names_matching(folder: Path, pattern: str) -> list[str]:
    """Return the names of the files in a folder that a regular expression describes."""
    with os.scandir(folder) as entries:
        return [e.name for e in entries if re.fullmatch(pattern, e.name) and e.is_file()]


def link_or_copy(source: Path, target: Path) -> None:
    """Make `target` another name of a file, atomically; a copy where the system makes no links.

    Raises:
        FedlogitError: if `source` cannot be read, the folder not written, or the disk is full.
    """
    temporary = _temporary_name(target)
    try:
        with writing(target):
            try:
                temporary.hardlink_to(source)
            except OSError:
                shutil.copy2(source, temporary)
                _sync(temporary)
            temporary.replace(target)  # does nothing where both are names of one file
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def is_plain_name(part: str) -> bool:
    """Return whether a part of a path can be the name of a file in a folder: not ``..``, nor long.

    It must be printable, as a terminal would obey control characters in a message.
    """
    return part not in ("", ".", "..") and part.isprintable() and len(part.encode()) <= 255


def remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Remove what killed processes left half-written of some files in a folder, not below it.

    To be called by who alone writes there: it cannot tell a file in the making from a leftover.

    Args:
        folder: The folder; it need not be there.
        names: The files, whose temporary names go, and nobody else's hidden files; if one is a
            ``.safetensors``, so do the temporary names that safetensors gives.
    """
    paths = [Path(name) for name in names]
    patterns = [_temporary_names(path) for path in paths]
    if any(path.suffix == ".safetensors" for path in paths):
        patterns.append(_OF_SAFETENSORS)
    if folder.is_dir():
        for name in _names_matching(folder, "|".join(patterns)):
            (folder / name).unlink(missing_ok=True)


def remove_leftovers_of(path: Path) -> None:
    """Remove what killed processes left of `write_atomic` of one file; for who holds its lock."""
    remove_leftovers(path.parent, [path.name])


def _sync(path: Path) -> None:
    """Flush to the disk, so that a rename never outruns the bytes it names."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_json(path: Path, data: Any) -> Path:
    """Write `data` as indented JSON, atomically; return the path."""
    with write_atomic(path) as temporary:
        temporary.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n")
    return path


def read_json(path: Path) -> Any:
    """Read JSON.

    Raises:
        DataError: if the file is missing, too large or not JSON, or gives a key twice.
    """
    with reading(path):
        size = Path(path).stat().st_size
        if size > LARGEST_JSON:
            raise DataError(
                f"{path} is refused: it has {size:,} bytes of JSON, more than {LARGEST_JSON:,}"
            )
        content = Path(path).read_bytes()
    try:
        return json.loads(content.decode(), object_pairs_hook=_each_once)
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}") from None
    except RecursionError:
        raise DataError(f"{path} is not valid JSON: it is nested too deeply") from None


def read_text(path: Path, hint: str = "") -> str:
    """Return a text.

    Args:
        path: The file.
        hint: What to do if it cannot be read, for the message.

    Raises:
        DataError: if it cannot be read or is not UTF-8.
    """
    with reading(path, hint):
        return path.read_text(encoding="utf-8")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; the last of two equal keys would win without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} is given twice; give it once")
    return found


def write_sealed(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as JSON, atomically, with a digest of all of it under ``digest``."""
    write_json(path, {**record, "digest": json_digest(record)})


def read_sealed(path: Path, hint: str) -> dict[str, Any]:
    """Read what `write_sealed` wrote.

    Args:
        path: The file.
        hint: How it is made again, for the message.

    Raises:
        DataError: if the file is missing, not JSON, or not as it was written.
    """
    try:
        data = read_json(path)
    except DataError as error:
        raise DataError(f"{error}; {hint}") from None
    rest = {k: v for k, v in data.items() if k != "digest"} if isinstance(data, dict) else {}
    if not rest or json_digest(rest) != data.get("digest"):
        raise DataError(f"{path} is damaged: its digest does not match; {hint}")
    return rest


def canonical_json(data: Any) -> str:
    """Return `data` as JSON with sorted keys and no spaces: equal data give equal texts."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def json_digest(data: Any) -> str:
    """Return the SHA-256 of `data` as canonical JSON, as hex."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the SHA-256 (or other digest) of a file, as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def array_digest(*arrays: np.ndarray) -> str:
    """Return the SHA-256 over dtype, shape and bytes of each array, as hex."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def arrays_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 over arrays in the order of their names, as hex."""
    return array_digest(*(arrays[name] for name in sorted(arrays)))


def save_npz(path: Path, arrays: Mapping[str, np.ndarray], *, compressed: bool = True) -> None:
    """Write named arrays to a ``.npz``, atomically."""
    save = np.savez_compressed if compressed else np.savez
    with write_atomic(path) as temporary, temporary.open("wb") as file:
        save(file, allow_pickle=False, **arrays)


def load_npz(path: Path, limit: int = LIMIT) -> dict[str, np.ndarray]:
    """Read all arrays of an ``.npz``; never unpickles, nor unpacks more than it should.

    Args:
        path: The file.
        limit: Bytes that all arrays may have together.

    Raises:
        DataError: if the file is missing, truncated, corrupt, too large, or holds Python objects.
    """
    try:
        _check_sizes(path, limit)
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
            if odd := next((a for a, array in found.items() if array.dtype.kind not in _KINDS), ""):
                raise DataError(f"{path}: {odd} is of {found[odd].dtype}, not numbers or text")
            return found
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (OSError, EOFError, zipfile.BadZipFile, RuntimeError, *_OF_A_HEADER) as error:
        raise DataError(f"{path} is not a readable .npz archive: {error}") from None
    except (zlib.error, struct.error) as error:
        raise DataError(f"{path} is corrupt: {error}") from None


_KINDS = "biufUS"  # of numbers and text, without dates, whose bytes cannot be taken
# What NumPy raises of a header that is no dictionary of a shape, an order and a type.
_OF_A_HEADER = (
    *(ValueError, KeyError, AttributeError, TypeError, OverflowError, MemoryError),
    *(RecursionError, SyntaxError, tokenize.TokenError),
)


def _check_sizes(path: Path, limit: int) -> None:
    """Refuse an archive that is too large before anything is unpacked but its headers.

    No member is unpacked beyond the size that the archive's directory says. NumPy makes room for as
    much as the header of the array says; so the two must agree.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > limit:
            raise DataError(
                f"{path} is refused: it unpacks to {total:,} bytes; what it should be has at most"
                f" {limit:,}"
            )
        for member in members:
            check_packing(path, member)
            if member.comment:  # NumPy writes none; a damaged length makes one of the next member
                raise DataError(f"{path} is not a readable .npz archive: a member has a comment")
            with archive.open(member) as stream:
                if not _agrees(stream, member.file_size):
                    name = member.filename.removesuffix(".npy")
                    raise DataError(
                        f"{path} is not a readable .npz archive: {name} is not an array of the"
                        f" {member.file_size:,} bytes that the archive says"
                    )


def check_packing(path: Path, member: zipfile.ZipInfo) -> None:
    """Refuse a packing that Python unpacks without a bound, and NumPy never writes.

    Raises:
        DataError: if it is neither deflate nor none.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{path} is refused: its member {member.filename!r} is not deflated")


def _agrees(stream: IO[bytes], size: int) -> bool:
    """Return whether the header of an ``.npy`` says that it has `size` bytes, itself included."""
    headers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        shape, _, kind = headers[np.lib.format.read_magic(stream)](stream)
    except _OF_A_HEADER:  # no array, or one with field names in Unicode
        return False
    if not kind.itemsize and math.prod(shape) > 1:  # as many as it likes, of no size
        return False
    # Objects have no size; they are refused when they are read.
    return kind.hasobject or stream.tell() + math.prod(shape) * kind.itemsize == size
