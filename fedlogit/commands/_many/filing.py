"""Finished runs that travel: which files of them, and how they are filed where they arrive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedlogit.errors import DataError, FedlogitError, writing
from fedlogit.runs import layout
from fedlogit.runs.checkpoint import remove_checkpoints
from fedlogit.runs.finishing import remove_half_written
from fedlogit.runs.hints import rerun_hint
from fedlogit.runs.integrity import read_spec
from fedlogit.runs.run import check_folder, run_lock

__all__ = ["Filed", "file_runs", "files_of_runs", "move_file"]

# Arrays alone are exported: a module among them could be imported by a spec that names it.
_MEMBER = re.compile(
    rf"((?:[^/]+/){{3}}[^/]+)/({'|'.join(map(re.escape, layout.RECORDS))}"
    rf"|{layout.EXPORTS}/[^/]+\.(?:npz|safetensors))"
)


@dataclass
class Filed:
    """What became of runs that arrived.

    Attributes:
        new: Filed now.
        there: Here before, with the same outcome, and left as they are.
        refused: Why a run was not taken, by its folder.
    """

    new: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def files_of_runs(runs: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return what travels of finished runs, by its name in an archive: what the cache would keep.

    Exports for people (weights, logits), which may be large, stay behind.
    """
    found: dict[str, Path] = {}
    for name in names:
        exports = sorted((runs / name / layout.EXPORTS).glob("[!.]*"))
        kept = [
            f"{layout.EXPORTS}/{path.name}" for path in exports if path.name not in layout.NOT_KEPT
        ]
        found |= {f"{name}/{file}": runs / name / file for file in (*layout.RECORDS, *kept)}
    return found


def file_runs(arrived: Path, files: Sequence[str], runs: Path) -> Filed:
    """Check the runs that arrived, and file each one that is not here as if trained here.

    Args:
        arrived: A folder with their files, on the file system of `runs`; they are taken from it.
        files: The files, below it.
        runs: The folder of runs.

    Raises:
        DataError: if there is a file that is not one of a run.
    """
    matches = [_MEMBER.fullmatch(file) for file in files]
    if None in matches:
        raise DataError(f"{files[matches.index(None)]!r} is not a file of a finished run")
    filed = Filed()
    for run in dict.fromkeys(match[1] for match in matches if match):
        try:
            _check(arrived, arrived / run)
            (filed.new if _file(arrived / run, runs / run) else filed.there).append(run)
        except FedlogitError as error:
            filed.refused[run] = _without_hint(str(error), arrived / run).replace(f"{arrived}/", "")
    return filed


def _without_hint(message: str, folder: Path) -> str:
    """Return a message without the advice to remove a run and train it: it was never here."""
    return message.replace(f"; {rerun_hint(folder)}", "")


def _check(root: Path, folder: Path) -> None:
    """Refuse a run that is not whole, belongs to another folder, or brings more than it says."""
    from fedlogit.results.runs.finished import check_run  # with pandas, which only this needs

    listed = check_run(root, folder).result.exports
    for path in (folder / layout.EXPORTS).glob("*"):
        if listed is not None and path.name not in listed:
            raise DataError(f"{path}: result.json does not list this export")


def _file(source: Path, target: Path) -> bool:
    """Move a run to its place; return whether it was not here.

    Raises:
        FedlogitError: if another outcome is here, or the place cannot be written.
    """
    with run_lock(target) as missing:
        if not missing:
            if _outcome(source) != _outcome(target):
                raise FedlogitError(
                    f"a run with another outcome is here, which stays; to take this one, remove"
                    f" {target} and unpack again"
                )
            return False
        check_folder(read_spec(source), target)
        _move(source, target)
        remove_checkpoints(target)
        remove_half_written(target)
    return True


def _move(source: Path, target: Path) -> None:
    """Move a run's files, the result last, so that what is half there counts as unfinished.

    The spec goes first: by it a folder is known as a run's.
    """
    exports = [f"{layout.EXPORTS}/{path.name}" for path in (source / layout.EXPORTS).glob("*")]
    for name in (layout.SPEC, *exports, layout.ROUNDS, layout.RESULT):
        move_file(source / name, target / name)


def move_file(source: Path, target: Path) -> None:
    """Move a file to its place on the same file system; its folder is made if missing.

    Raises:
        FedlogitError: if the place cannot be written.
    """
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)


def _outcome(folder: Path) -> Any:
    """Return all that a run found, without when, where and how fast."""
    from fedlogit.results.runs.run import read_run

    run = read_run(folder, read_spec(folder).digest())
    timed = [name for name in run.rounds.columns if name.startswith("seconds")]
    result = run.result.model_dump(exclude={"provenance", "exports"})
    return result, run.rounds.drop(columns=timed).to_csv(index=False)
