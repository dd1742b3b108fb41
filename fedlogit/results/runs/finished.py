"""Finished runs in a folder: which there are, and whether each is what its folder's name says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fedlogit.errors import DataError, FedlogitError
from fedlogit.results.runs.run import Run, read_run
from fedlogit.runs import layout
from fedlogit.runs.hints import rerun_hint
from fedlogit.runs.integrity import read_spec
from fedlogit.runs.paths import run_dir

__all__ = ["SortedRuns", "check_run", "finished_runs", "folders_with", "sort_runs"]


@dataclass(frozen=True)
class SortedRuns:
    """Finished runs of a folder, as paths below it.

    Attributes:
        ready: Complete, at the scales that were asked for, and named by their own hash.
        left_out: Runs at other scales.
        refused: For each run that is damaged or lies in the wrong place, the reason.
    """

    ready: tuple[str, ...]
    left_out: tuple[str, ...]
    refused: dict[str, str]


def finished_runs(root: Path) -> Iterator[Path]:
    """Yield the folders below `root` that hold a result, less hidden ones, in order of names."""
    return folders_with(layout.RESULT, root)


def folders_with(name: str, root: Path) -> Iterator[Path]:
    """Yield the folders below `root` that hold a file of this name, less hidden ones, in order."""
    for path in sorted(root.rglob(name)):
        if not any(part.startswith(".") for part in path.relative_to(root).parts):
            yield path.parent


def check_run(root: Path, folder: Path) -> Run:
    """Read a finished run and check that its spec's hash names its folder.

    Args:
        root: The folder of all runs.
        folder: The run's folder below it.

    Raises:
        DataError: if a file is missing, truncated or of another run, an export is damaged or
            missing, or the folder is misnamed.
    """
    spec = read_spec(folder)
    if folder.relative_to(root).as_posix() != str(run_dir(spec)):
        raise DataError(f"{folder}: its spec belongs to {root / run_dir(spec)}; delete the folder")
    run = read_run(folder, spec.digest())
    for name in run.result.exports or {}:
        path = folder / layout.EXPORTS / name
        if name not in layout.NOT_KEPT and not path.exists():
            raise DataError(
                f"{path} is missing, but {layout.RESULT} lists it; {rerun_hint(folder)}"
            )
        run.check_export(name)
    return run


def sort_runs(root: Path, wanted: Callable[[str], bool]) -> SortedRuns:
    """Sort the finished runs below `root` into those to keep, to leave out and to refuse.

    Args:
        root: The folder of runs.
        wanted: Whether to keep a run, by its folder below `root`.
    """
    ready: list[str] = []
    others: list[str] = []
    refused: dict[str, str] = {}
    for folder in finished_runs(root):
        name = folder.relative_to(root).as_posix()
        try:
            check_run(root, folder)
        except FedlogitError as error:
            refused[name] = str(error)
            continue
        (ready if wanted(name) else others).append(name)
    return SortedRuns(tuple(ready), tuple(others), refused)
