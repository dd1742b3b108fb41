"""A process that carries out one task after another, on one device.

Runs are processes, not threads: each then trains as if it were alone. PyTorch's settings, CUDA's
stream and the main thread's signals belong to a process, and one that takes all memory ends alone.
"""

from __future__ import annotations

import argparse
import gc
import io
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from tqdm import tqdm

from fedlogit.commands import aggregate, export_logits, train, train_clients
from fedlogit.commands._many.tasks import Call, Task
from fedlogit.errors import FedlogitError
from fedlogit.runs.gpus import own_gpu
from fedlogit.runs.setup import choose_device
from fedlogit.stopping import SIGNALS, Stopped, collect_signals, exit_code, exit_on_signal

__all__ = ["Outcome", "serve"]

_COMMANDS = {
    "aggregate": aggregate,
    "export_logits": export_logits,
    "train": train,
    "train_clients": train_clients,
}
_STOPPED = tuple(map(exit_code, SIGNALS))


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes:
        output: What its commands printed.
        error: Why it failed, in one line, or "".
        stopped: Whether it was asked to stop, and saved what it had.
    """

    output: str = ""
    error: str = ""
    stopped: bool = False


def serve(connection: Connection, device: str, jobs: int) -> None:
    """Carry out every task that comes, and answer how it ended, until nobody sends any more.

    Signals that ask to stop are to be blocked when this begins; they then wait for the handlers.

    Args:
        connection: Where tasks come from.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
        jobs: How many such processes may share a GPU.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for who sends tasks
    tqdm.set_lock(threading.RLock())  # its own is a semaphore, which outlives who is killed
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # what was imported before the fork need not be looked at after each task
    with exit_on_signal():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*SIGNALS, signal.SIGINT))
        try:
            with _taken(device, jobs) as name:
                _answer(connection, lambda task, output: _outcome(task, name, output))
        except FedlogitError as error:
            reason = str(error)
            _answer(connection, lambda _task, _output: Outcome(error=reason))


def _answer(connection: Connection, how: Callable[[Task, io.StringIO], Outcome]) -> None:
    """Answer how each task ended; a second signal must not cost the answer to the first."""
    with suppress(EOFError, BrokenPipeError):  # nobody is there any more
        while True:
            task, output = connection.recv(), io.StringIO()
            try:
                outcome = how(task, output)
            except Stopped:
                outcome = Outcome(output.getvalue(), stopped=True)
            with collect_signals():
                connection.send(outcome)


def _end_with_parent() -> None:
    """Save and end, as if asked to, when the process that sends tasks was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _taken(device: str, jobs: int) -> Iterator[str]:
    """Hold a device for all tasks; yield a name by which they do not look for one themselves."""
    with own_gpu(device, jobs):
        chosen = choose_device(device)
        yield "cuda:0" if str(chosen) == "cuda" else str(chosen)


def _outcome(task: Task, device: str, output: io.StringIO) -> Outcome:
    error, stopped = "", False
    _forget(device)
    with redirect_stdout(output), redirect_stderr(output):
        try:
            for call in task.calls:
                _carry_out(call, device)
        except FedlogitError as mistake:
            error = str(mistake)
        except SystemExit as end:
            stopped = end.code in _STOPPED
            error = "" if stopped else f"ended with exit code {end.code}"
        except Exception as fault:
            traceback.print_exc()
            error = f"{type(fault).__name__}: {fault}".partition("\n")[0]
    return Outcome(output.getvalue(), error, stopped)


def _carry_out(call: Call, device: str) -> None:
    name, options = call
    parser = argparse.ArgumentParser(name)
    _COMMANDS[name].add_arguments(parser)
    on = () if name == "aggregate" else ("--device", device)
    _COMMANDS[name].main(parser.parse_args((*options, *on)))


def _forget(device: str) -> None:
    """Give back what the task before took, and count the peak of memory anew."""
    gc.collect()
    if torch.cuda.is_initialized():  # before it is, there is nothing to forget, and counting fails
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    with suppress(OSError):  # where there is no Linux
        Path("/proc/self/clear_refs").write_text("5")
