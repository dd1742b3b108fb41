"""Signals that ask a process to stop: SIGTERM, which Slurm sends at a limit, SIGUSR1, Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = [
    "SIGNALS",
    "Stopped",
    "collect_signals",
    "exit_code",
    "exit_on_signal",
    "is_stop",
    "raise_if_stopped",
    "stop_after_round",
]

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
PATIENCE = 30.0
"""Seconds that Ctrl-C waits for the end of a round: Snakemake, and who sits there, wait with it."""
_WAIT_NOTICE = (
    "\nstops once this round (or, after the last, the run) is saved, but waits"
    f" {PATIENCE:.0f} s for that at most;"
    " Ctrl-C again does not wait\n"
).encode()

_received: list[int] = []  # the signals that became `Stopped` since `exit_on_signal` began


class Stopped(SystemExit):
    """A signal asked this process to end; the code is the signal's.

    Attributes:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        """End with the code that shells give."""
        super().__init__(exit_code(number))
        self.number = number


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal stopped, as shells give it."""
    return 128 + number


def is_stop(end: SystemExit) -> bool:
    """Return whether a process ends because a signal asked it to, and not by a call of its own."""
    codes = [exit_code(number) for number in (*SIGNALS, signal.SIGINT)]
    return isinstance(end, Stopped) or end.code in codes


def raise_if_stopped() -> None:
    """Raise `Stopped` if a signal came; to be called before another error is handled.

    Compiled libraries turn whatever is raised while they run into an error of their own, `Stopped`,
    too: pydantic into a SchemaError.

    Raises:
        Stopped: if a signal of `exit_on_signal` came.
    """
    if _received:
        raise Stopped(_received[0])


@contextmanager
def collect_signals(signals: Sequence[int] = SIGNALS) -> Iterator[list[int]]:
    """Yield a list to which each of these signals is appended, and which else have no effect.

    Outside the main thread no signal is handled.
    """
    received: list[int] = []
    with _handled(lambda number, _frame: received.append(number), signals):
        yield received


@contextmanager
def stop_after_round() -> Iterator[list[int]]:
    """Yield a list of the signals that came, for who looks at it after every round.

    Ctrl-C is one of them, unless this process ignores it, as one in the background does. Nobody
    need wait for a long round: a second one interrupts, and the first does after `PATIENCE`.

    Raises:
        KeyboardInterrupt: at the second SIGINT, or where the round has not ended by then.
    """
    received: list[int] = []

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def note(number: int, _frame: FrameType | None) -> None:
        again = number in received
        received.append(number)  # first of all: the next signal may interrupt what follows
        if number == signal.SIGINT:
            if again:
                raise KeyboardInterrupt
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            with suppress(OSError):  # whoever reads may have been stopped, too
                os.write(2, _WAIT_NOTICE)  # what prints may be what was interrupted

    handles_sigint = signal.getsignal(signal.SIGINT) != signal.SIG_IGN
    with (
        _handled(interrupt, [signal.SIGALRM]),
        _handled(note, (*SIGNALS, signal.SIGINT) if handles_sigint else SIGNALS),
    ):
        try:
            yield received
        finally:
            if received:
                signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """Raise `Stopped` when a signal of `SIGNALS` comes, so that every `finally` is carried out.

    Raises:
        Stopped: when one comes, also in place of an error that a library made of that.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        _received.append(number)
        raise Stopped(number)

    _received.clear()
    try:
        with _handled(leave, SIGNALS):
            yield
    except Exception:
        raise_if_stopped()
        raise
    finally:
        _received.clear()


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
