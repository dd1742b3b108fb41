"""What has become of many runs: finished, failed, begun or left, as their folders show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fedlogit.commands._many.selection import SelectedRuns
from fedlogit.commands._many.tasks import clients_folder
from fedlogit.errors import DataError
from fedlogit.runs import layout
from fedlogit.runs.integrity import check_finished
from fedlogit.runs.paths import ResultsLayout

__all__ = ["damaged", "report", "states"]

_SAVED = (layout.CHECKPOINTS, layout.PARTS, layout.CLIENTS)


def damaged(selected: SelectedRuns, results: Path) -> dict[str, str]:
    """Return why a run that has a result is not whole, or not that of its spec, by its folder."""
    found: dict[str, str] = {}
    for run, spec in selected.runs.items():
        folder = ResultsLayout(results).run(run)
        if (folder / layout.RESULT).exists():
            try:
                check_finished(folder, spec.digest())
            except DataError as error:
                found[str(folder)] = str(error)
    return found


def states(selected: SelectedRuns, results: Path, failed: Mapping[str, str]) -> dict[str, str]:
    """Return what has become of each run: ``finished``, ``failed``, ``begun`` or ``left``.

    Args:
        selected: The runs.
        results: The folder of results.
        failed: The folders whose task failed, or whose files are damaged.
    """
    found: dict[str, str] = {}
    for run, spec in selected.runs.items():
        folder = ResultsLayout(results).run(run)
        if str(folder) in failed:
            found[run] = "failed"
        elif (folder / layout.RESULT).exists():
            found[run] = "finished"
        else:
            saved = [folder, clients_folder(results, spec)]
            begun = any(path is not None and _saved(path) for path in saved)
            found[run] = "begun" if begun else "left"
    return found


def _saved(folder: Path) -> bool:
    return any(next(folder.glob(name), None) for name in _SAVED)


def report(found: Mapping[str, str], refused: Iterable[str], before: int) -> Iterator[str]:
    """Yield a line for each run, by what has become of it, and one that counts them.

    Args:
        found: As from `states`.
        refused: Files of specs, or entries of theirs, that were refused: they count as failed.
        before: How many had finished before.
    """
    order = ("finished", "failed", "begun", "left")
    found = dict(found) | dict.fromkeys(refused, "failed")
    yield from (f"{state:8}  {run}" for state in order for run in found if found[run] == state)
    count = Counter(found.values())
    yield (
        f"{count['finished']} of {len(found)} runs are finished"
        f" ({count['finished'] - before} of them now), {count['failed']} failed,"
        f" {count['begun']} begun, {count['left']} left"
    )
