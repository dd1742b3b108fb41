"""A pool of processes that carry out tasks, within a limit of time."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import Self

from fedlogit.commands._many.process import CAUGHT, Process
from fedlogit.commands._many.tasks import Queue, Task
from fedlogit.commands._many.worker import Outcome
from fedlogit.stopping import collect_signals

__all__ = ["Limits", "ProcessPool"]

_POLL = 0.2  # seconds until a signal or a limit is noticed
_GOES_ON = "the same command goes on"


@dataclass(frozen=True)
class Limits:
    """Moments of the clock `time.monotonic`.

    Attributes:
        stop: No task begins any more; those that run are asked to save and to stop.
        kill: Those that still run are ended; they go on from their last checkpoint.
    """

    stop: float = math.inf
    kill: float = math.inf

    @classmethod
    def after(cls, start: float, seconds: float, grace: float) -> Self:
        """Return limits within so many seconds; a quarter of the last `grace` is for what follows.

        Args:
            start: When the seconds began.
            seconds: After them all shall be over.
            grace: How long before that runs are asked to stop.
        """
        end = start + seconds
        return cls(end - grace, end - grace / 4)


class ProcessPool:
    """Up to so many processes, started when there is a task for them.

    Attributes:
        failed: Why a task failed, in one line, by its folder's path.
    """

    def __init__(
        self, device: str, jobs: int, limits: Limits, on_end: Callable[[Task, Outcome], None]
    ) -> None:
        """Start nothing yet.

        Args:
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
            jobs: Processes at most.
            limits: When to stop.
            on_end: Called with each task that ended, and how.
        """
        self._device, self._jobs, self._limits, self._on_end = device, jobs, limits, on_end
        self._workers: list[Process] = []
        self.failed: dict[str, str] = {}

    def run(self, tasks: Sequence[Task]) -> list[int]:
        """Carry out tasks until all have ended, a limit comes, or a signal.

        Returns:
            The signals that came; [] if none did.
        """
        queue = Queue(tasks)
        with collect_signals(CAUGHT) as signals, self._ended_at_last():
            while self._busy() or (queue and not self._stopping(signals)):
                if self._stopping(signals):
                    self._stop(signals)
                else:
                    self._hand_out(queue)
                for worker in self._answering():
                    self._take(worker, queue, self._stopping(signals))
            return signals

    def _busy(self) -> list[Process]:
        return [worker for worker in self._workers if worker.task is not None]

    def _stopping(self, signals: list[int]) -> bool:
        return bool(signals) or time.monotonic() >= self._limits.stop

    def _hand_out(self, queue: Queue) -> None:
        while len(self._busy()) < self._jobs and (task := queue.take()):
            idle = [worker for worker in self._workers if worker.task is None]
            if not idle:
                idle = [Process(self._device, self._jobs)]
                self._workers += idle
            idle[0].give(task)

    def _stop(self, signals: list[int]) -> None:
        over = time.monotonic() >= self._limits.kill or signals.count(signal.SIGINT) > 1
        for worker in self._busy():
            worker.kill() if over else worker.stop()

    def _answering(self) -> list[Process]:
        """Return the processes that have an answer or have ended; wait a moment for one."""
        ready = wait([worker.connection for worker in self._busy()], _POLL)
        return [worker for worker in self._busy() if worker.connection in ready]

    def _take(self, worker: Process, queue: Queue, stopping: bool) -> None:
        task = worker.task
        assert task is not None
        outcome = self._outcome(worker, stopping)
        worker.task = None
        if outcome.error:
            self._fail(task, outcome.error, queue)
        elif not outcome.stopped:
            queue.ended(task)
        self._on_end(task, outcome)

    def _outcome(self, worker: Process, stopping: bool) -> Outcome:
        """Return how its task ended; that it did not end though nobody here asked is an error."""
        outcome = worker.answer()
        if outcome is None:
            self._workers.remove(worker)
            outcome = Outcome(error=f"its process ended with {worker.end()}", stopped=True)
        elif outcome.stopped:
            outcome = replace(outcome, error="its process was asked to stop")
        if outcome.stopped:
            outcome = replace(outcome, error="" if stopping else f"{outcome.error}; {_GOES_ON}")
        return outcome

    def _fail(self, task: Task, reason: str, queue: Queue) -> None:
        self.failed[str(task.folder)] = reason
        for other in queue.failed(task):
            self.failed[str(other.folder)] = f"its clients failed ({task.folder})"

    @contextmanager
    def _ended_at_last(self) -> Iterator[None]:
        try:
            yield
        finally:
            for worker in self._busy():  # of an error between: nobody waits for them
                worker.stop()
            for worker in self._workers:
                worker.end()
            self._workers = []
