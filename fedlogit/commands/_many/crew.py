"""Processes that share tasks, and the moment when they are asked to stop."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Self

from fedlogit.commands._many.tasks import Queue, Task
from fedlogit.commands._many.worker import Outcome, serve
from fedlogit.stopping import SIGNALS, asked_to_stop

__all__ = ["Crew", "Limits"]

_POLL = 0.2  # seconds until a signal or a limit is noticed
_PATIENCE = 10  # seconds for a process to end that has nothing to do
_CAUGHT = (*SIGNALS, signal.SIGINT)
# A process is forked by one that has imported PyTorch, and never touched a device.
_CONTEXT = multiprocessing.get_context("forkserver")


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


class _Worker:
    """A process, and the task that it has."""

    def __init__(self, device: str, jobs: int) -> None:
        self._connection, other = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=serve, args=(other, device, jobs), daemon=True)
        _start_server()
        self._process.start()
        other.close()
        self.task: Task | None = None
        self._asked = False

    @property
    def connection(self) -> Connection:
        """Where its answers come from."""
        return self._connection

    def give(self, task: Task) -> None:
        self.task = task
        with suppress(BrokenPipeError):  # it has ended, and `answer` will say so
            self._connection.send(task)

    def answer(self) -> Outcome | None:
        """Return how its task ended; None if the process ended instead."""
        try:
            outcome: Outcome = self._connection.recv()
        except (EOFError, OSError):
            return None
        return outcome

    def stop(self) -> None:
        """Ask it to save and to stop, once."""
        pid = self._process.pid
        if not self._asked and pid is not None and self._process.is_alive():
            os.kill(pid, signal.SIGTERM)
        self._asked = True

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> str:
        """Wait until it has ended; return how."""
        self._connection.close()
        self._process.join(_PATIENCE)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        code = self._process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _start_server() -> None:
    """Start the process that forks others; signals to a whole group or job must not end it.

    They are blocked in it, and so in what it forks, until `serve` has handlers.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _CAUGHT)
    try:
        resource_tracker.ensure_running()  # a second helper of Python's; it lets signals through
        signal.pthread_sigmask(signal.SIG_BLOCK, _CAUGHT)
        _CONTEXT.set_forkserver_preload([serve.__module__])
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Crew:
    """Up to so many processes, started as there is something to do, that share tasks.

    Attributes:
        failed: Why a task failed, in one line, by its folder's path.
    """

    def __init__(
        self, device: str, jobs: int, limits: Limits, told: Callable[[Task, Outcome], None]
    ) -> None:
        """Start nothing yet.

        Args:
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
            jobs: Processes at most.
            limits: When to stop.
            told: Called with each task that ended, and how.
        """
        self._device, self._jobs, self._limits, self._told = device, jobs, limits, told
        self._workers: list[_Worker] = []
        self.failed: dict[str, str] = {}

    def carry_out(self, tasks: Sequence[Task]) -> list[int]:
        """Carry out tasks until all have ended, a limit comes, or a signal.

        Returns:
            The signals that came; [] if none did.
        """
        queue = Queue(tasks)
        with asked_to_stop(_CAUGHT) as signals, self._ended_at_last():
            while self._busy() or (queue and not self._stopping(signals)):
                if self._stopping(signals):
                    self._stop(signals)
                else:
                    self._hand_out(queue)
                for worker in self._answering():
                    self._take(worker, queue, self._stopping(signals))
            return signals

    def _busy(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.task is not None]

    def _stopping(self, signals: list[int]) -> bool:
        return bool(signals) or time.monotonic() >= self._limits.stop

    def _hand_out(self, queue: Queue) -> None:
        while len(self._busy()) < self._jobs and (task := queue.take()):
            idle = [worker for worker in self._workers if worker.task is None]
            if not idle:
                idle = [_Worker(self._device, self._jobs)]
                self._workers += idle
            idle[0].give(task)

    def _stop(self, signals: list[int]) -> None:
        over = time.monotonic() >= self._limits.kill or signals.count(signal.SIGINT) > 1
        for worker in self._busy():
            worker.kill() if over else worker.stop()

    def _answering(self) -> list[_Worker]:
        """Return the processes that have an answer or have ended; wait a moment for one."""
        ready = wait([worker.connection for worker in self._busy()], _POLL)
        return [worker for worker in self._busy() if worker.connection in ready]

    def _take(self, worker: _Worker, queue: Queue, stopping: bool) -> None:
        task, outcome = worker.task, worker.answer()
        assert task is not None
        worker.task = None
        if outcome is None:
            self._workers.remove(worker)
            how = worker.end()
            error = "" if stopping else f"its process ended with {how}; the same command goes on"
            outcome = Outcome(error=error, stopped=stopping)
        if outcome.error:
            self._fail(task, outcome.error, queue)
        elif not outcome.stopped:
            queue.ended(task)
        self._told(task, outcome)

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
