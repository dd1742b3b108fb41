"""Measures repetitions: a process for each implementation, one round each, one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from benchmarks.implementations import HERE, Implementation

__all__ = ["Measurement", "Process", "repeat"]

SAMPLE_SECONDS = 0.1
ANSWER_SECONDS = 3600.0
"""What takes longer for a repetition is taken to be stuck, and is ended."""


@dataclass
class Measurement:
    """What an implementation took.

    Attributes:
        implementation: Which.
        seconds: Of each repetition that counts.
        accuracy: After the last one.
        first: Seconds from the command line to the answer to the first, which does not count.
        memory: Most bytes of its tree of processes at a time, shared pages divided (PSS).
        reason: Why there are no numbers.
    """

    implementation: Implementation
    seconds: list[float] = field(default_factory=list)
    accuracy: float = float("nan")
    first: float = float("nan")
    memory: int = 0
    reason: str = ""


class Process:
    """An implementation's process, which waits for its repetitions."""

    def __init__(self, implementation: Implementation) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            implementation.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, text=True, env=_environment(),
        )  # fmt: skip

    def run(self) -> dict[str, float]:
        """Let it carry out a round.

        Raises:
            RuntimeError: with the last line it printed, if it did not answer, or not in time.
        """
        limit = threading.Timer(ANSWER_SECONDS, self._kill)
        limit.start()
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            if limit.finished.is_set():
                raise RuntimeError(f"no answer in {ANSWER_SECONDS:g} s") from None
            self._errors.seek(0)
            last = self._errors.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(last[-1] if last else "it ended without a word") from None
        finally:
            limit.cancel()

    def memory(self) -> int:
        """Return bytes of its processes now; what they share is divided among them."""
        total = 0
        try:
            root = psutil.Process(self._process.pid)
            for process in [root, *root.children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue  # it has just ended
        except psutil.Error:
            pass
        return total

    def close(self) -> None:
        """End it, and the processes that it started."""
        self._kill()
        self._errors.close()

    def _kill(self) -> None:
        tree: list[psutil.Process] = []
        with suppress(psutil.Error):
            tree = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()
        for process in tree:
            with suppress(psutil.Error):
                process.kill()


def repeat(
    implementations: Sequence[Implementation], repetitions: int, log: Callable[[str], None] = print
) -> list[Measurement]:
    """Measure one repetition that does not count, then `repetitions` that do; all once in each.

    Memory is taken in the first alone, so that looking costs no counted time. What fails has a
    reason instead of numbers, and is not started again.
    """
    measured = [Measurement(one, reason=one.reason) for one in implementations]
    processes: dict[int, Process] = {}
    try:
        for repetition in range(repetitions + 1):
            for i, one in enumerate(measured):
                if one.reason:
                    continue
                try:
                    if repetition == 0:
                        _first(one, processes, i)
                    else:
                        answer = processes[i].run()
                        one.seconds.append(answer["seconds"])
                        one.accuracy = answer["accuracy"]
                except RuntimeError as error:
                    one.reason = f"failed: {error}"
                    one.seconds.clear()
                last = one.reason or f"{one.seconds[-1] if repetition else one.first:.3f} s"
                log(f"repetition {repetition}, {one.implementation.name}: {last}")
    finally:
        for process in processes.values():
            process.close()
    return measured


def _first(one: Measurement, processes: dict[int, Process], i: int) -> None:
    begin = time.perf_counter()
    processes[i] = Process(one.implementation)
    done = threading.Event()
    most: list[int] = [0]

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            most.append(processes[i].memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        one.accuracy = processes[i].run()["accuracy"]
    finally:
        done.set()
        watcher.join()
    one.first, one.memory = time.perf_counter() - begin, max(most)


def _environment() -> dict[str, str]:
    """Return what all of them get: threads that sleep while they wait, and the protocol."""
    root, peers = HERE.parent, HERE / "peers"
    return os.environ | {
        "OMP_WAIT_POLICY": "passive",
        "PYTHONPATH": os.pathsep.join(map(str, (root, peers, peers / "flower"))),
    }
