"""Being asked to stop: SIGTERM, which Slurm sends at a limit, SIGUSR1, Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = [
    "SIGNALS",
    "Stopped",
    "asked_to_stop",
    "exit_code",
    "exit_when_asked",
    "heed",
    "is_stop",
    "stop_after_round",
]

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
PATIENCE = 30.0
"""Seconds that Ctrl-C waits for the end of a round: Snakemake, and who sits there, wait with it."""
_WAITS = (
    "\nstops once this round (or, after the last, the run) is saved, but waits"
    f" {PATIENCE:.0f} s for that at most;"
    " Ctrl-C again does not wait\n"
).encode()

_came: list[int] = []  # the signals that became `Stopped` since `exit_when_asked` began


class Stopped(SystemExit):
    """A signal asked this process to end; the code is the signal's."""


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal stopped, as shells give it."""
    return 128 + number


def is_stop(end: SystemExit) -> bool:
    """Return whether a process ends because a signal asked it to, and not by a call of its own."""
    codes = [exit_code(number) for number in (*SIGNALS, signal.SIGINT)]
    return isinstance(end, Stopped) or end.code in codes


def heed() -> None:
    """End as a signal asked, for who is about to handle another error.

    Compiled libraries make an error of their own of whatever is raised while they run, of `Stopped`
    too: pydantic a SchemaError.

    Raises:
        Stopped: if a signal of `exit_when_asked` came.
    """
    if _came:
        raise Stopped(exit_code(_came[0]))


@contextmanager
def asked_to_stop(signals: Sequence[int] = SIGNALS) -> Iterator[list[int]]:
    """Yield a list of the signals, of those given, that came, and otherwise ignore them.

    Outside the main thread nothing is handled: there the caller does.
    """
    asked: list[int] = []
    with _handled(lambda number, _frame: asked.append(number), signals):
        yield asked


@contextmanager
def stop_after_round() -> Iterator[list[int]]:
    """Yield a list of the signals that came, for who looks at it after every round.

    Ctrl-C is one of them, unless this process ignores it, as one in the background does. Nobody
    need wait for a long round: a second one interrupts, and the first does after `PATIENCE`.

    Raises:
        KeyboardInterrupt: at the second SIGINT, or where the round has not ended by then.
    """
    asked: list[int] = []

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def note(number: int, _frame: FrameType | None) -> None:
        again = number in asked
        asked.append(number)  # first of all: the next signal may interrupt what follows
        if number == signal.SIGINT:
            if again:
                raise KeyboardInterrupt
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            with suppress(OSError):  # whoever reads may have been stopped, too
                os.write(2, _WAITS)  # what prints may be what was interrupted

    heeded = signal.getsignal(signal.SIGINT) != signal.SIG_IGN
    with (
        _handled(interrupt, [signal.SIGALRM]),
        _handled(note, (*SIGNALS, signal.SIGINT) if heeded else SIGNALS),
    ):
        try:
            yield asked
        finally:
            if asked:
                signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def exit_when_asked() -> Iterator[None]:
    """Leave at once when a signal of `SIGNALS` comes, through every `finally` on the way.

    Raises:
        Stopped: when one comes, also in the place of an error that a library made of that.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        _came.append(number)
        raise Stopped(exit_code(number))

    _came.clear()
    try:
        with _handled(leave, SIGNALS):
            yield
    except Exception:
        heed()
        raise
    finally:
        _came.clear()


@contextmanager
def _handled(
    handler: Callable[[int, FrameType | None], None], signals: Sequence[int]
) -> Iterator[None]:
    try:
        before = {number: signal.signal(number, handler) for number in signals}
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
