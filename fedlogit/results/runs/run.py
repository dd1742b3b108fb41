"""One finished run, read from its directory, and refused unless its hash is the expected one.

A run directory describes itself: ``spec.json`` says what was asked for, ``rounds.csv`` has a row
for each round, ``result.json`` the final metrics and where they come from.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import BaseModel, ValidationError

from fedlogit.component import explain
from fedlogit.errors import DataError
from fedlogit.files import load_npz, read_text
from fedlogit.partition import Roles
from fedlogit.runs import layout
from fedlogit.runs.hints import rerun_hint
from fedlogit.runs.integrity import check_export, read_result, read_spec
from fedlogit.spec import RunSpec

__all__ = ["Result", "Run", "read_run"]


# A file of the run's own folder: no path, not hidden, and arrays alone.
_EXPORT = re.compile(r"\w[\w.+-]{0,99}\.(?:npz|safetensors)")


class _Final(BaseModel):
    """Metrics after the last round."""

    accuracy: float | None = None
    accuracy_std: float | None = None
    balanced_accuracy: float | None = None
    per_class: list[float | None] = []
    per_client: list[float] = []


class _Bytes(BaseModel):
    """All bytes of the run by kind of message, summed over clients and rounds."""

    up: dict[str, int] = {}
    down: dict[str, int] = {}


class _Provenance(BaseModel):
    """Where a result comes from; what tables and figures say of it."""

    spec_digest: str
    code_version: str
    own_code: dict[str, str] = {}  # digests of modules from outside the library
    device: str
    engine: str
    precision: str
    dataset_note: str = ""
    wall_seconds: float
    clients_wall_seconds: float = 0.0  # of clients that a run in stages shares with others
    dataset_digest: str  # this and the next three: of what the run saw
    split_digest: str
    tokenizer_digest: str = ""  # of a run on text
    probes_digest: str = ""  # of a run with images of another data set

    @property
    def whole_version(self) -> str:
        """The library's version, and that of each module from outside, ``name@digest``."""
        own = (f"{name}@{digest}" for name, digest in self.own_code.items())
        return " ".join([self.code_version, *own])


class _Split(BaseModel):
    """The partition of the data: counts (clients, classes), and roles where there are some."""

    counts: list[list[int]]
    rare_classes: list[int] = []
    free_riders: list[int] = []


class Result(BaseModel):
    """The part of ``result.json`` that tables and figures use."""

    status: str
    final: _Final = _Final()
    split: _Split
    bytes: _Bytes
    provenance: _Provenance
    exports: dict[str, str] | None = None  # digests; None: made before results listed them


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    Attributes:
        folder: Its directory.
        spec: What was asked for.
        result: What came out.
        rounds: A row for each round, in order.
    """

    folder: Path
    spec: RunSpec
    result: Result
    rounds: pd.DataFrame

    @property
    def diverged(self) -> bool:
        """Return whether training ended in values that are not finite."""
        return self.result.status == "diverged"

    def counts(self) -> np.ndarray:
        """Return the samples of each class at each client, int64 (clients, classes)."""
        return np.array(self.result.split.counts, dtype=np.int64)

    def roles(self) -> Roles:
        """Return the rare classes and free riders of the partition."""
        split = self.result.split
        return Roles(tuple(split.rare_classes), tuple(split.free_riders))

    def contributions(self) -> np.ndarray:
        """Return each client's contribution by round, float64 (rounds, clients).

        Raises:
            DataError: if the method has no contributions.
        """
        columns = [f"contribution_{i}" for i in range(self.spec.clients)]
        if not set(columns) <= set(self.rounds.columns):
            raise DataError(f"{self.folder}: method {self.spec.method.name} has no contributions")
        return self.rounds[columns].to_numpy(dtype=np.float64)

    def export(self, name: str, *needed: str) -> dict[str, np.ndarray]:
        """Return the arrays of ``exports/<name>.npz``.

        Raises:
            DataError: if the run did not export them, the file is damaged, or lacks one of those
                that are needed.
        """
        self.check_export(f"{name}.npz")
        path = self.folder / layout.EXPORTS / f"{name}.npz"
        found = load_npz(path)
        if lacking := [key for key in needed if key not in found]:
            raise DataError(f"{path}: array {lacking[0]!r} is missing")
        return found

    def check_export(self, name: str) -> None:
        """Refuse an export that is there but not as the run wrote it.

        Results made before they listed their exports (`exports` is None) have nothing to compare.

        Raises:
            DataError: naming the file.
        """
        if self.result.exports is not None:
            check_export(self.folder, name, self.result.exports.get(name))


def read_run(folder: Path, digest: str) -> Run:
    """Read a run and check that it is the one that was asked for and that it is complete.

    A run that several tables and figures show is read once by a process, unless its files change.

    Args:
        folder: The run's directory.
        digest: SHA-256 of the canonical JSON of the spec it must have.

    Raises:
        DataError: if a file is missing, truncated or malformed, if the spec or the result belongs
            to another hash, or if the run has neither finished nor diverged.
    """
    if not folder.is_dir():
        raise DataError(f"run {folder} does not exist")
    state = tuple(_file_state(folder / name) for name in layout.RECORDS)
    return _read_checked(folder, digest, state)


def _file_state(path: Path) -> tuple[int, int] | None:
    """Return what differs when a file is written again; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=1 << 13)
def _read_checked(folder: Path, digest: str, state: tuple[tuple[int, int] | None, ...]) -> Run:
    """Read and check a run whose files are in a state; see `read_run`."""
    spec = read_spec(folder)
    _refuse_other_spec(folder / layout.SPEC, digest, spec.digest())
    result = _read_result(folder)
    _refuse_other_spec(folder / layout.RESULT, digest, result.provenance.spec_digest)
    rounds = _read_rounds(folder / layout.ROUNDS)
    run = Run(folder, spec, result, rounds)
    divided = len(result.split.counts)
    if divided != spec.clients:
        raise DataError(
            f"{folder / layout.RESULT}: its data were divided among {divided} clients, the spec has"
            f" {spec.clients}; {rerun_hint(folder)}"
        )
    if not run.diverged:
        _refuse_incomplete(run)
    return run


def _refuse_other_spec(path: Path, expected: str, found: str) -> None:
    """Refuse a file that belongs to another spec."""
    if expected != found:
        raise DataError(
            f"{path}: expected spec {expected[:12]}…, found {found[:12]}…;"
            f" {rerun_hint(path.parent)}"
        )


def _read_result(folder: Path) -> Result:
    """Read ``result.json`` of a run that has ended."""
    path, data = folder / layout.RESULT, read_result(folder)
    try:
        result = Result.model_validate(data)
    except ValidationError as error:
        raise DataError(str(explain(error, str(path)))) from None
    if result.status not in ("finished", "diverged"):
        raise DataError(f"{path}: status is {result.status!r}, must be 'finished' or 'diverged'")
    for name in result.exports or {}:
        if not _EXPORT.fullmatch(name):  # whose file would be read, here or anywhere
            raise DataError(
                f"{path}: exports lists {name[:100]!r}, should be a plain name of a file in the"
                " run's folder exports, such as aggregation.npz"
            )
    return result


def _read_rounds(path: Path) -> pd.DataFrame:
    """Read ``rounds.csv``, whose rounds must count up from 1."""
    text = read_text(path)
    try:
        rounds = pd.read_csv(io.StringIO(text))
    except ValueError as error:
        raise DataError(f"{path} is not a valid table: {error}") from None
    if not text.endswith("\n"):
        raise DataError(f"{path} is truncated: its last line has no end; {rerun_hint(path.parent)}")
    if rounds.empty:  # diverged in round 1
        return rounds
    if "round" not in rounds or list(rounds["round"]) != list(range(1, len(rounds) + 1)):
        raise DataError(f"{path}: column 'round' must count 1, 2, 3, …")
    for name in rounds:
        if not pd.api.types.is_numeric_dtype(rounds[name]):
            raise DataError(f"{path}: column {str(name)[:100]!r} has text, and should have numbers")
    return rounds


def _refuse_incomplete(run: Run) -> None:
    """Refuse a run that says it finished but lacks rounds, or, if it trained, its accuracy."""
    if len(run.rounds) != run.spec.rounds:
        path = run.folder / layout.ROUNDS
        raise DataError(
            f"{path} is truncated: {len(run.rounds)} of {run.spec.rounds} rounds;"
            f" {rerun_hint(run.folder)}"
        )
    if run.spec.ledger_only:
        return
    accuracy = run.result.final.accuracy
    if accuracy is None or not math.isfinite(accuracy):
        raise DataError(f"{run.folder / layout.RESULT}: finished without a final accuracy")
