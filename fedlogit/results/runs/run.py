"""One finished run, read from its directory, and refused unless its hash is the expected one.

A run directory describes itself: ``spec.json`` says what was asked for, ``rounds.csv`` has a row
for each round, ``result.json`` the final metrics and where they come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from fedlogit.errors import DataError
from fedlogit.files import load_npz
from fedlogit.partition import Roles
from fedlogit.results.runs.exports import check_arrays
from fedlogit.results.runs.result import Result, as_result
from fedlogit.results.runs.rounds import read_rounds
from fedlogit.runs import layout
from fedlogit.runs.hints import rerun_hint
from fedlogit.runs.integrity import check_export, read_result, read_spec
from fedlogit.spec import RunSpec

__all__ = ["Run", "read_run"]


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
        """Return the arrays of ``exports/<name>.npz`` that are needed.

        Raises:
            DataError: if the run did not export them, the file is damaged, or one of them is
                missing or has another shape, kind or range than what it holds.
        """
        self.check_export(f"{name}.npz")
        path = self.folder / layout.EXPORTS / f"{name}.npz"
        found = load_npz(path)
        sizes = {"clients": self.spec.clients, "models": 1 + self.spec.clients}
        if self.spec.text is None:  # a text's classes are its tokens
            sizes["classes"] = self.counts().shape[1]
        check_arrays(path, found, needed, sizes)
        return {key: found[key] for key in needed}

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


def _file_state(path: Path) -> tuple[int, int, int] | None:
    """Return what differs when a file is written again; None if it is not there.

    A file system may tell times in steps of some milliseconds. A new file is another inode.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=1 << 13)
def _read_checked(folder: Path, digest: str, state: tuple[tuple[int, int, int] | None, ...]) -> Run:
    """Read and check a run whose files are in a state; see `read_run`."""
    spec = read_spec(folder)
    _refuse_other_spec(folder / layout.SPEC, digest, spec.digest())
    path = folder / layout.RESULT
    result = as_result(read_result(folder), path)
    _refuse_other_spec(path, digest, result.provenance.spec_digest)
    rounds = read_rounds(folder / layout.ROUNDS)
    run = Run(folder, spec, result, rounds)
    _refuse_misfit(run)
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


def _refuse_misfit(run: Run) -> None:
    """Refuse a result of another number of clients or classes, and rounds that nobody asked for."""
    path, hint = run.folder / layout.RESULT, rerun_hint(run.folder)
    clients, classes = run.counts().shape
    if clients != run.spec.clients:
        raise DataError(
            f"{path}: its data were divided among {clients} clients, the spec has"
            f" {run.spec.clients}; {hint}"
        )
    tested = len(run.result.final.per_class)
    if run.spec.text is None and tested not in (0, classes):  # a text's classes are its tokens
        raise DataError(
            f"{path}: final.per_class has {tested} classes, split.counts has {classes}; {hint}"
        )
    if (models := len(run.result.final.per_client)) > clients:
        raise DataError(
            f"{path}: final.per_client has {models} values for {clients} clients; {hint}"
        )
    if len(run.rounds) > run.spec.rounds:
        raise DataError(
            f"{run.folder / layout.ROUNDS} has {len(run.rounds)} rounds, the spec has"
            f" {run.spec.rounds}; {hint}"
        )


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
