"""Whether a run that has ended is as it was written; apart from what needs PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedlogit.errors import DataError, FedlogitError, reading
from fedlogit.files import file_digest, read_json, read_sealed
from fedlogit.runs import layout
from fedlogit.runs.hints import rerun_hint
from fedlogit.spec import RunSpec

__all__ = ["check_export", "check_finished", "read_result", "read_spec"]


def read_spec(folder: Path) -> RunSpec:
    """Read a run's ``spec.json``.

    Raises:
        DataError: if it is missing, not JSON or no spec of this version, with what to do.
    """
    path = folder / layout.SPEC
    try:
        return RunSpec.read(read_json(path), str(path))
    except FedlogitError as error:
        raise DataError(f"{error}; {rerun_hint(folder)}") from None


def read_result(folder: Path) -> dict[str, Any]:
    """Read a run's ``result.json``, without its digest, once it and the rounds are found whole.

    Raises:
        DataError: if it is missing, not JSON or not as it was written, or ``rounds.csv`` is not.
    """
    path, rounds = folder / layout.RESULT, folder / layout.ROUNDS
    result = read_sealed(path, rerun_hint(folder))
    with reading(rounds, rerun_hint(folder)):
        whole = file_digest(rounds) == result.get("rounds_digest")
    if not whole:
        raise DataError(
            f"{rounds} is damaged or truncated: result.json has another digest of it;"
            f" {rerun_hint(folder)}"
        )
    return result


def check_finished(folder: Path, digest: str) -> None:
    """Refuse a run that has a result, but not a whole one, or not that of its spec.

    Args:
        folder: The run's folder.
        digest: Of its spec.

    Raises:
        DataError: naming the file, with what to do.
    """
    result = read_result(folder)
    read_spec(folder)  # without it no command reads the run
    found = str(_dict(result.get("provenance")).get("spec_digest"))
    if found != digest:
        raise DataError(
            f"{folder / layout.RESULT}: expected spec {digest[:12]}…, found {found[:12]}…;"
            f" {rerun_hint(folder)}"
        )
    for name, written in _dict(result.get("exports")).items():
        check_export(folder, Path(name).name, written)


def _dict(found: Any) -> dict[str, Any]:
    """Return what is a dictionary in the result of any run, be it from elsewhere."""
    return found if isinstance(found, dict) else {}


def check_export(folder: Path, name: str, digest: str | None) -> None:
    """Refuse an export that is there but not as the run wrote it.

    Args:
        folder: The run's folder.
        name: Of the export's file.
        digest: What the result says of it; None if it does not list it.

    Raises:
        DataError: naming the file, with what to do.
    """
    path = folder / layout.EXPORTS / name
    if not path.exists():
        return
    if not path.is_file():  # a pipe or a device is read for ever
        raise DataError(f"{path} is no regular file; {rerun_hint(folder)}")
    if file_digest(path) != digest:
        raise DataError(
            f"{path} is damaged: result.json has another digest of it, or none;"
            f" {rerun_hint(folder)}"
        )
