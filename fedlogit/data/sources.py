"""The kinds of sources of ``data/sources.yaml``: each puts its raw files into a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, RootModel
from tqdm import tqdm

from fedlogit.component import Part
from fedlogit.data.raw import file_digest
from fedlogit.errors import DataError, FedlogitError, unknown

__all__ = ["SOURCES", "Mirror", "Source", "read_sources"]

SOURCES = Path(__file__).resolve().parents[2] / "data" / "sources.yaml"
_CONNECT = 5  # seconds for an address to answer, and for each read
_CLIENT = 1200  # seconds for a registry's client
_BLOCK = 1 << 18
_Name = Annotated[str, Field(pattern=r"^[\w][\w.+-]*$")]
_Path = Annotated[str, Field(pattern=r"^[\w][\w.+-]*(/[\w][\w.+-]*)*$")]


class Base(Part, ABC):
    """A source; `format` is a key of `fedlogit.data.decode.FORMATS`, or ``isic``."""

    kind: str
    format: str

    @abstractmethod
    def fetch(self, name: str, folder: Path, mirror: Path | None) -> None:
        """Put the raw files of data set `name` into `folder`.

        Raises:
            DataError: in one line why this source cannot serve.
        """

    @abstractmethod
    def about(self) -> str:
        """Return what messages and ``source.json`` call it."""


class Url(Base):
    """Files at the first of some official addresses."""

    kind: Literal["url"]
    base: Annotated[list[Annotated[str, Field(pattern=r"^https?://.*/$")]], Field(min_length=1)]
    files: Annotated[list[_Name], Field(min_length=1)]
    digests: dict[str, Annotated[str, Field(pattern=r"^(md5|sha256):[0-9a-f]+$")]] = {}

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> None:
        failures = []
        for base in self.base:
            try:
                for file in self.files:
                    _get(base + file, folder / file)
                    self._verify(folder / file)
                return
            except DataError as error:
                failures.append(str(error))
        raise DataError("; ".join(failures))

    def _verify(self, path: Path) -> None:
        algorithm, _, digest = self.digests.get(path.name, "").partition(":")
        if algorithm and file_digest(path, algorithm) != digest:
            raise DataError(f"{path.name} arrived damaged: its {algorithm} is not {digest[:12]}…")

    def about(self) -> str:
        return " or ".join(self.base)


class Npm(Base):
    """A package of the npm registry, its archive as it is; no script of it is run."""

    kind: Literal["npm"]
    package: Annotated[str, Field(pattern=r"^[\w@][\w./-]*@[\w.-]+$")]

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> None:
        options = ["--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        _client(["npm", "pack", *options, self.package], folder)

    def about(self) -> str:
        return f"npm package {self.package}"


class Apt(Base):
    """A package of the distribution; its files come out as one tar archive."""

    kind: Literal["apt"]
    package: _Name

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> None:
        options = [f"-oAcquire::http::Timeout={_CONNECT}", "-oAcquire::Retries=0"]
        download = ["apt-get", *options, "download", self.package]
        try:
            _client(download, folder)
        except DataError:  # the lists may be missing or old
            _client(["apt-get", *options, "update"], folder)
            _client(download, folder)
        for package in folder.glob("*.deb"):
            with (folder / f"{self.package}.tar").open("wb") as file:
                _client(["dpkg-deb", "--fsys-tarfile", package.name], folder, file)
            package.unlink()

    def about(self) -> str:
        return f"apt package {self.package}"


class Mirror(Base):
    """Files of a folder that the user names."""

    kind: Literal["mirror"]
    files: list[_Path] = []

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> None:
        root = _root(mirror)
        for file in self.paths(name):
            if not (root / file).is_file():
                raise DataError(f"{root} has no {file}")
            shutil.copyfile(root / file, folder / Path(file).name)

    def paths(self, name: str) -> list[str]:
        """Return what the mirror should hold, relative to it."""
        return self.files or [f"{name}.npz"]

    def about(self) -> str:
        return "mirror"


class Folder(Base):
    """A folder of the mirror whose images stay where they are; only `files` are copied."""

    kind: Literal["folder"]
    folder: _Name
    files: list[_Path]

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> None:
        root = _root(mirror) / self.folder
        if not root.is_dir():
            raise DataError(f"{root} is not a folder")
        for file in self.files:
            if not (root / file).is_file():
                raise DataError(f"{root} has no {file}")
            shutil.copyfile(root / file, folder / Path(file).name)

    def about(self) -> str:
        return f"folder {self.folder} of the mirror"


class Embedded(Base):
    """Data that come with a library."""

    kind: Literal["embedded"]
    library: str

    def fetch(self, name: str, folder: Path, mirror: Path | None) -> None:
        """Nothing to fetch."""

    def about(self) -> str:
        return self.library


Source = Annotated[Url | Npm | Apt | Mirror | Folder | Embedded, Field(discriminator="kind")]


class _Entry(Part, RootModel[Source]):
    model_config = {"extra": None}
