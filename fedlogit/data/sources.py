"""The kinds of sources of ``data/sources.yaml``: each puts its raw files into a folder."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fedlogit.data.content import TEXTS
from fedlogit.data.transport import TIMEOUT, client, get
from fedlogit.errors import DataError, unknown
from fedlogit.files import file_digest
from fedlogit.frozen_config import FrozenConfig
from fedlogit.yaml_files import load_yaml

__all__ = ["SOURCES", "Base", "Folder", "Mirror", "read_sources"]

SOURCES = Path(__file__).resolve().parents[2] / "data" / "sources.yaml"
_Name = Annotated[str, Field(pattern=r"^[\w][\w.+-]*$")]
_Path = Annotated[str, Field(pattern=r"^[\w][\w.+-]*(/[\w][\w.+-]*)*$")]


class Base(FrozenConfig, ABC):
    """A source; `format` is a key of `fedlogit.data.decode.FORMATS`, or ``isic``."""

    kind: str
    format: str

    @abstractmethod
    def fetch(self, name: str, folder: Path, mirror: Path | None) -> str:
        """Put the raw files of data set `name` into `folder`; return where they came from.

        Raises:
            DataError: in one line why this source cannot serve.
        """

    @abstractmethod
    def about(self) -> str:
        """Return what messages call it."""


class Url(Base):
    """Files at the first of some official addresses."""

    kind: Literal["url"]
    base: Annotated[list[Annotated[str, Field(pattern=r"^https?://.*/$")]], Field(min_length=1)]
    files: Annotated[list[_Name], Field(min_length=1)]
    digests: dict[str, Annotated[str, Field(pattern=r"^(md5|sha256):[0-9a-f]+$")]] = Field(
        default_factory=dict
    )

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> str:
        failures = []
        for base in self.base:
            try:
                for file in self.files:
                    get(base + file, folder / file)
                    self._verify(folder / file)
                return base
            except DataError as error:
                failures.append(str(error))
        raise DataError("; ".join(failures))

    def _verify(self, path: Path) -> None:
        algorithm, _, digest = self.digests.get(path.name, "").partition(":")
        if algorithm and file_digest(path, algorithm) != digest:
            raise DataError(f"{path.name} arrived damaged: its {algorithm} is not {digest[:12]}…")

    def about(self) -> str:
        return "official address"


class Npm(Base):
    """A package of the npm registry, its archive as it is; no script of it is run."""

    kind: Literal["npm"]
    package: Annotated[str, Field(pattern=r"^[\w@][\w./-]*@[\w.-]+$")]

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> str:
        options = ["--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        client(["npm", "pack", *options, self.package], folder)
        return self.about()

    def about(self) -> str:
        return f"npm package {self.package}"


class Apt(Base):
    """A package of the distribution; its files come out as one tar archive."""

    kind: Literal["apt"]
    package: _Name

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> str:
        options = [f"-oAcquire::http::Timeout={TIMEOUT}", "-oAcquire::Retries=0"]
        download = ["apt-get", *options, "download", self.package]
        try:
            client(download, folder)
        except DataError:  # the lists may be missing or old
            client(["apt-get", *options, "update"], folder)
            client(download, folder)
        for package in folder.glob("*.deb"):
            with (folder / f"{self.package}.tar").open("wb") as file:
                client(["dpkg-deb", "--fsys-tarfile", package.name], folder, file)
            package.unlink()
        return self.about()

    def about(self) -> str:
        return f"apt package {self.package}"


class Mirror(Base):
    """Files of a folder that the user names."""

    kind: Literal["mirror"]
    files: tuple[_Path, ...] = ()

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> str:
        """Copy the files."""
        _copy(_root(mirror), self.paths(name), folder)
        return self.about()

    def paths(self, name: str) -> list[str]:
        """Return what the mirror should hold, relative to it."""
        usual = [f"{name}/{split}.txt" for split in TEXTS] if self.format == "text" else []
        return list(self.files) or usual or [f"{name}.npz"]

    def about(self) -> str:
        """Return ``mirror``."""
        return "mirror"


class Folder(Base):
    """A folder of the mirror whose images stay where they are; only `files` are copied."""

    kind: Literal["folder"]
    folder: _Name
    files: tuple[_Path, ...]

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> str:
        """Copy the files that are not images; return the folder."""
        root = _root(mirror) / self.folder
        if not root.is_dir():
            raise DataError(f"{root} is not a folder")
        _copy(root, self.files, folder)
        return str(root.resolve())

    def about(self) -> str:
        """Return which folder."""
        return f"folder {self.folder} of the mirror"


class Embedded(Base):
    """Data that come with a library."""

    kind: Literal["embedded"]
    library: str

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> str:
        return self.about()

    def about(self) -> str:
        return self.library


Source = Annotated[Url | Npm | Apt | Mirror | Folder | Embedded, Field(discriminator="kind")]


class _Sources(FrozenConfig):
    datasets: dict[str, Annotated[list[Source], Field(min_length=1)]]


def read_sources(name: str, path: Path = SOURCES) -> list[Base]:
    """Return the sources of a data set, in the order in which to try them.

    Raises:
        FedlogitError: if the file is missing or wrong, or has no such data set.
    """
    datasets = _Sources.read({"datasets": load_yaml(path)}, str(path)).datasets
    if name not in datasets:
        raise unknown(f"dataset in {path}", name, datasets)
    return list(datasets[name])


def _copy(root: Path, files: Iterable[str], folder: Path) -> None:
    for file in files:
        if not (root / file).is_file():
            raise DataError(f"{root} has no {file}")
        shutil.copyfile(root / file, folder / Path(file).name)


def _root(mirror: Path | None) -> Path:
    """Return the mirror folder.

    Raises:
        DataError: if none was given, or it is not there.
    """
    if mirror is None:
        raise DataError("no folder given (--mirror FOLDER or FEDLOGIT_MIRROR)")
    if not mirror.is_dir():
        raise DataError(f"{mirror} is not a folder")
    return mirror
