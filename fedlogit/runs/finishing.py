"""The end of a job: its outputs get their names last of all, and can get them again.

Slurm may kill a job after its last byte was written but before its process has ended. The job then
counts as failed, and Snakemake deletes its outputs. So each output has a second, hidden name in the
same folder, a hard link; `layout.FINISHED_NOTE` has the digests of all files and of what they were
made from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedlogit.errors import DataError
from fedlogit.files import (
    file_digest,
    json_digest,
    link_or_copy,
    read_json,
    remove_leftovers,
    write_json,
)
from fedlogit.runs import layout
from fedlogit.spec import EXPORTS_OF_METHODS, EXPORTS_OF_RUNS

__all__ = [
    "forget_outputs",
    "hidden",
    "keep_outputs",
    "log_line",
    "make_outputs_once",
    "remove_half_written",
]

_EXPORTS = (layout.WEIGHTS, *(f"{name}.npz" for name in (*EXPORTS_OF_RUNS, *EXPORTS_OF_METHODS)))


def hidden(path: Path) -> Path:
    """Return the second name of an output."""
    return path.with_name(f".{path.name}")


def make_outputs_once(
    folder: Path,
    outputs: Sequence[str],
    facts: Mapping[str, Any],
    *,
    make: Callable[[], None],
    tidy: Callable[[], None],
) -> None:
    """Do a job, or only publish again what an earlier one made that counts as failed all the same.

    A kill at any moment leaves either a job that is done again, or resumed, or outputs that are
    kept and need only be published; never an output beside what `tidy` removes.

    Args:
        folder: Where the job writes.
        outputs: What Snakemake deletes if the job fails.
        facts: What decides every bit; a job with other facts does not take these files.
        make: Does the job, and writes the outputs under their hidden names.
        tidy: Removes what only a job that goes on would need.

    Raises:
        FedlogitError: if the folder cannot be written.
    """
    if _outputs_are_kept(folder, outputs, facts):
        made = "result is" if len(outputs) == 1 else "files are"
        log_line(f"{folder} had finished before; its {made} put back")
    else:
        make()
        keep_outputs(folder, outputs, facts)
    tidy()
    _publish_outputs(folder, outputs)


def log_line(text: str) -> None:
    """Print a line to standard error, which is the job's log."""
    with suppress(OSError):  # whoever reads may have been stopped, too
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def keep_outputs(folder: Path, outputs: Sequence[str], facts: Mapping[str, Any]) -> None:
    """Note what a finished job made, so that nothing of it need be made again.

    Args:
        folder: Holds the outputs, under their hidden names, and what else the job made.
        outputs: What Snakemake deletes if the job fails.
        facts: What decides every bit; a job with other facts does not take these files.

    Raises:
        FedlogitError: if the folder cannot be written.
    """
    made = [path for path in folder.rglob("*") if path.is_file() and _lasting(path)]
    made = [path for path in made if path.name not in outputs]
    made += [hidden(folder / name) for name in outputs]
    digests = {path.relative_to(folder).as_posix(): file_digest(path) for path in made}
    write_json(folder / layout.FINISHED_NOTE, {"facts": json_digest(facts), "files": digests})


def forget_outputs(folder: Path) -> None:
    """Forget what a finished job noted, so that the next one makes everything anew."""
    (folder / layout.FINISHED_NOTE).unlink(missing_ok=True)


def _publish_outputs(folder: Path, outputs: Sequence[str]) -> None:
    """Give kept outputs their names, one after another, last of all that is done in a folder.

    Before that, what killed processes left half-written there is removed.

    Raises:
        FedlogitError: if the folder cannot be written.
    """
    remove_half_written(folder)
    for path in (folder / name for name in outputs):
        link_or_copy(hidden(path), path)


def remove_half_written(folder: Path) -> None:
    """Remove what killed jobs left half-written of their files, and nothing else that is hidden."""
    remove_leftovers(folder, layout.WRITTEN)
    remove_leftovers(folder / layout.EXPORTS, _EXPORTS)


def _outputs_are_kept(folder: Path, outputs: Sequence[str], facts: Mapping[str, Any]) -> bool:
    """Return whether an earlier job kept what it made, it is whole, and may be published again.

    Args:
        folder: The job's folder.
        outputs: As for `keep_outputs`.
        facts: What decides every bit of a job that starts now.
    """
    with suppress(DataError, OSError):
        note = read_json(folder / layout.FINISHED_NOTE)
        files = note.get("files") if isinstance(note, dict) else None
        if not isinstance(files, dict):  # a damaged note
            return False
        whole = {hidden(Path(name)).name for name in outputs} <= files.keys()
        if whole and note.get("facts") == json_digest(facts):
            return all(file_digest(folder / name) == digest for name, digest in files.items())
    return False


def _lasting(path: Path) -> bool:
    return not path.name.startswith((".", "checkpoint", "part-"))
