"""A process that carries out tasks, from the side of the process that sends them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection

from fedlogit.commands._many.tasks import Task
from fedlogit.commands._many.worker import Outcome, serve
from fedlogit.stopping import SIGNALS

__all__ = ["CAUGHT", "Process"]

CAUGHT = (*SIGNALS, signal.SIGINT)
"""Signals on which whoever sends tasks asks to stop, and which do not reach its processes."""

_PATIENCE = 10  # seconds for a process to end that has nothing to do
# A process is forked by one that has imported PyTorch, and never touched a device.
_CONTEXT = multiprocessing.get_context("forkserver")


class Process:
    """A process that carries out tasks, and the one that it has.

    Attributes:
        task: What it was given, until whoever gave it has its answer.
    """

    def __init__(self, device: str, jobs: int) -> None:
        """Start it.

        Args:
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
            jobs: How many such processes may share a GPU.
        """
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
        """Send it a task."""
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
        if not self._asked and pid is not None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGTERM)
        self._asked = True

    def kill(self) -> None:
        """End it at once."""
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
    before = signal.pthread_sigmask(signal.SIG_BLOCK, CAUGHT)
    try:
        resource_tracker.ensure_running()  # a second helper of Python's; it lets signals through
        signal.pthread_sigmask(signal.SIG_BLOCK, CAUGHT)
        _CONTEXT.set_forkserver_preload([serve.__module__])
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
