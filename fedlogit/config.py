"""What a user may choose in ``config.yaml``: typed, and closed to unknown keys."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator

from fedlogit.engine_names import EngineName
from fedlogit.errors import FedlogitError
from fedlogit.frozen_config import MAX_PARALLEL, FrozenConfig, Name, Seeds
from fedlogit.yaml_files import load_yaml

__all__ = ["Settings", "UsuallyLeftOut", "read_settings"]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a name that is given twice, of which a slip made two."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"names {twice[0]} twice")
    return names


DistinctNames = Annotated[tuple[Name, ...], AfterValidator(_each_once)]
Names = Annotated[DistinctNames, Field(min_length=1)]
UsuallyLeftOut = Literal["smoke", "quick"]
"""Scales whose runs the cache holds only if they are named."""


def _same(value: Any) -> Any:
    return value


def _flag(value: Any) -> Any:
    """Return a shell's ``true`` or ``False`` as a truth value."""
    return {"true": True, "false": False}.get(value.lower(), value) if type(value) is str else value


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str | int) else value


def _numbers(value: Any) -> Any:
    """Return a list with its digits read as numbers: a shell's ``[0, 1]`` is a list of texts."""
    several = _several(value)
    if not isinstance(several, list):
        return several
    return [int(v) if isinstance(v, str) and re.fullmatch("[0-9]{1,19}", v) else v for v in several]


def _file_in(path: str) -> Path | None:
    """Return the file that a path leads to or through, if it is no folder's."""
    parts = [Path(path), *Path(path).parents]
    return next((part for part in parts if os.path.isfile(part)), None)  # noqa: PTH113


_RESULTS = "results"
_FROM_SHELL = {
    "papers": _several,
    "seeds": _numbers,
    "datasets": _several,
    "publish": _several,
    "frozen": _flag,
    "partial": _flag,
}


def read_settings(path: Path) -> dict[str, Any]:
    """Return the keys of a configuration file; an empty file has none.

    Raises:
        FedlogitError: if it cannot be read, is no YAML or no mapping.
    """
    data = load_yaml(path)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise FedlogitError(f"{path}: should be a mapping, such as scale: quick")
    return data


class Settings(FrozenConfig):
    """The configuration of the workflow; ``config.yaml`` explains each key.

    Attributes:
        papers: Which papers' tables and figures to make.
        scale: Which scale of the papers.
        seeds: Use these instead of the papers' own.
        datasets: Keep only the cells on these datasets.
        precision: Use this instead of the papers' own; it is part of a run's spec.
        engine: How clients are run: ``loop``, ``native``, ``unpadded``, ``graphed``, ``stacked``,
            or ``auto``, the fastest.
        device: Where to train.
        workers: Threads of one training run.
        runs_per_gpu: How many training runs may share a GPU.
        gpu_model: The type of GPU to ask Slurm for.
        gpu_partition: Slurm's partition for jobs that use a GPU; several with commas between.
        checkpoint_seconds: Least time between checkpoints of a run.
        mirror: A folder of ``.npz`` files to take datasets from if nothing else can be reached.
        frozen: Never train: a run that is missing is an error.
        partial: Draw from the runs that exist and leave the others out.
        publish: Scales that ``snakemake publish`` adds to the cache, too, besides the usual ones.
        data: Folder of raw and prepared datasets.
    """

    renamed: ClassVar[Mapping[str, str]] = {
        "kernel": "engine, which is auto, loop (was autograd), native, unpadded, graphed or stacked"
    }

    papers: Names = ("who_to_trust", "celm", "tally_train", "fedol", "comparison")
    scale: Name = "quick"
    seeds: Seeds | None = None
    datasets: Names | None = None
    precision: Literal["f32", "bf16"] | None = None
    engine: EngineName = "auto"
    device: str = "auto"
    workers: Annotated[int, Field(gt=0, le=MAX_PARALLEL)] = 1
    runs_per_gpu: Annotated[int, Field(gt=0, le=MAX_PARALLEL)] = 1
    gpu_model: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.]+$")] | None = None
    gpu_partition: Annotated[str, Field(pattern=r"^\w[\w.,-]*$")] | None = None
    checkpoint_seconds: Annotated[float, Field(ge=0)] = 60
    mirror: str | None = None
    frozen: bool = False
    partial: bool = False
    publish: Annotated[tuple[UsuallyLeftOut, ...], AfterValidator(_each_once)] = ()
    data: str = "data"

    @field_validator("data")
    @classmethod
    def _is_folder(cls, value: str) -> str:
        # What a shell, a glob or Snakemake's {wildcards} would read as something else.
        found = re.search(r"^-|[~$*?{}()\[\]<>|&;`'\"\\\x00-\x1f\x7f]", value)
        if found or not value.strip():
            raise ValueError(
                f"should be a folder's path without {found[0]!r}; write out ~ and variables"
                if found
                else "should be a folder's path"
            )
        if file := _file_in(value):
            raise ValueError(f"should be a folder's path, but {file} is a file")
        if Path(value).resolve().is_relative_to(Path(_RESULTS).resolve()):
            raise ValueError(f"should be a folder outside {_RESULTS}, where runs and tables are")
        return value

    @field_validator("mirror")
    @classmethod
    def _is_written_out(cls, value: str | None) -> str | None:
        if value is not None and (
            not value.strip() or value[0] == "~" or "$" in value or not value.isprintable()
        ):
            raise ValueError("should be a folder's path; write out ~ and variables")
        # One that is not there may be on the machine that downloads only: nodes read this, too.
        if value is not None and (file := _file_in(value)):
            raise ValueError(f"should be a folder's path, but {file} is a file")
        return value

    @field_validator("device")
    @classmethod
    def _is_device(cls, value: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:([0-9]|[1-9][0-9]))?", value):
            raise ValueError("should be auto, cpu, cuda or cuda:<number> with a number up to 99")
        return value

    @classmethod
    def load(cls, data: Mapping[str, Any], where: str) -> Self:
        """Check a configuration; `where` names it in errors.

        What a shell makes of ``--config seeds=0 frozen=true precision=null`` is understood, too.

        Raises:
            FedlogitError: one line with the key, its value and what would be right.
        """
        given = {key: None if value == "null" else value for key, value in data.items()}
        read = {key: _FROM_SHELL.get(key, _same)(value) for key, value in given.items()}
        return cls.read(read, where)

    def overrides(self) -> dict[str, Any]:
        """Return what the user wants of every run, as a last layer of its spec."""
        return {} if self.precision is None else {"precision": self.precision}
