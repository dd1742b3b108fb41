"""Being asked to stop: SIGTERM, which Slurm sends at a limit, SIGUSR1, Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["SIGNALS", "asked_to_stop", "exit_code", "exit_when_asked", "stop_after_round"]

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_WAITS = b"\nstops when this round has ended and is saved; Ctrl-C again does not wait for it\n"


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal stopped, as shells give it."""
    return 128 + number


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
    need wait for a long round: a second one interrupts.

    Raises:
        KeyboardInterrupt: at the second SIGINT.
    """
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if number in asked:
                raise KeyboardInterrupt
            with suppress(OSError):  # whoever reads may have been stopped, too
                os.write(2, _WAITS)  # what prints may be what was interrupted
        asked.append(number)

    heeded = signal.getsignal(signal.SIGINT) != signal.SIG_IGN
    with _handled(note, (*SIGNALS, signal.SIGINT) if heeded else SIGNALS):
        yield asked


@contextmanager
def exit_when_asked() -> Iterator[None]:
    """Leave at once when a signal of `SIGNALS` comes, through every `finally` on the way."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(exit_code(number))

    with _handled(leave, SIGNALS):
        yield


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
