"""What makes a run: the same commands that the workflow's rules call, with the same files.

One-shot runs that share clients share them here, too: the clients are a task of their own, and the
runs on them come after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedlogit.files import write_json
from fedlogit.locks import is_held
from fedlogit.runs import layout
from fedlogit.runs.paths import ResultsLayout, run_dir, split_dir, stage_options
from fedlogit.runs.stages import clients_spec, in_stages
from fedlogit.spec import RunSpec

__all__ = ["Call", "Queue", "Task", "Tasks", "clients_folder"]

Call = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Task:
    """Commands that fill one folder.

    Attributes:
        folder: A run's, or that of clients that runs share.
        calls: Names of commands, each with its options.
        after: The folder of the task that must have ended before.
    """

    folder: Path
    calls: tuple[Call, ...]
    after: Path | None = None


def clients_folder(results: Path, spec: RunSpec) -> Path | None:
    """Return the folder of the clients that a run shares with others; None: it shares none."""
    if not in_stages(spec):
        return None
    return ResultsLayout(results).clients(run_dir(clients_spec(spec)))


@dataclass(frozen=True)
class Tasks:
    """Makes tasks of specs.

    Attributes:
        results: The folder of runs, clients, targets and plans.
        partitions: The folder of partitions; a run whose partition is not there divides anew.
        options: Of all commands that train.
        saving: Of `train` alone.
    """

    results: Path
    partitions: Path
    options: tuple[str, ...]
    saving: tuple[str, ...]

    @property
    def _layout(self) -> ResultsLayout:
        return ResultsLayout(self.results)

    def of(self, runs: Mapping[str, RunSpec]) -> list[Task]:
        """Return what is left to do for these runs, in their order, clients before runs."""
        found: dict[Path, Task] = {}
        for run, spec in runs.items():
            folder = self._layout.run(run)
            if (folder / layout.RESULT).exists():
                continue
            clients = clients_folder(self.results, spec)
            if clients is not None and clients not in found and not _answered(clients):
                found[clients] = self._clients(clients_spec(spec), clients)
            after = clients if clients in found else None
            found[folder] = Task(folder, tuple(self._run(run, spec, clients)), after)
        return list(found.values())

    def _clients(self, spec: RunSpec, folder: Path) -> Task:
        out = ("--out", str(folder), *self._divided(spec))
        weights = ("--weights", str(folder / layout.WEIGHTS))
        train = ("--spec", self._spec("clients", spec), *out)
        answer = ("--spec", str(folder / layout.SPEC), *weights, *out)
        return Task(folder, (("train_clients", train), ("export_logits", answer)))

    def _run(self, run: str, spec: RunSpec, clients: Path | None) -> list[Call]:
        own = ("--spec", self._spec("runs", spec))
        calls: list[Call] = []
        stages: dict[str, Any] = {}
        if clients is not None:
            stages["logits"] = str(clients / layout.LOGITS_RECORD)
            if spec.server is not None:  # the method distils into the server's model
                targets = self._layout.targets(run)
                stages["targets"] = str(targets)
                if not targets.exists():
                    logits = ("--logits", str(clients / layout.LOGITS))
                    calls.append(("aggregate", (*own, *logits, "--out", str(targets))))
        out = ("--out", str(self._layout.run(run)), *self._divided(spec))
        train = ("train", (*own, *out, *self.saving, *stage_options(stages)))
        return [*calls, train]

    def _divided(self, spec: RunSpec) -> tuple[str, ...]:
        split = self.partitions / split_dir(spec) / layout.INDICES
        return (*self.options, *(("--split", str(split)) if split.exists() else ()))

    def _spec(self, kind: str, spec: RunSpec) -> str:
        """Write a spec beside the workflow's plans, where its hash names it; return the path."""
        path = self._layout.plans / "many" / kind / f"{run_dir(spec)}.json"
        write_json(path, spec.model_dump(mode="json"))
        return str(path)


def _answered(clients: Path) -> bool:
    return all((clients / name).exists() for name in (layout.CLIENTS, layout.LOGITS_RECORD))


class Queue:
    """Tasks in their order, each held back until the one it comes after has ended well."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._waiting = list(tasks)
        self._open = {task.folder for task in tasks}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self) -> Task | None:
        """Take the first task that can begin, if there is one.

        Those whose folder another process fills come last: whoever takes one waits for that
        process. So several processes with the same list share its runs.
        """
        ready = [task for task in self._waiting if task.after not in self._open]
        free = (task for task in ready if not is_held(task.folder / layout.LOCK))
        task = next(free, ready[0] if ready else None)
        if task is not None:
            self._waiting.remove(task)
        return task

    def ended(self, task: Task) -> None:
        """Let the tasks begin that come after one."""
        self._open.discard(task.folder)

    def failed(self, task: Task) -> list[Task]:
        """Drop the tasks that come after one; return them."""
        dropped = [other for other in self._waiting if other.after == task.folder]
        self._waiting = [other for other in self._waiting if other.after != task.folder]
        return dropped
