"""Being asked to stop: SIGTERM, which Slurm sends at a limit, and SIGUSR1, which users choose."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

__all__ = ["SIGNALS", "asked_to_stop", "exit_code", "exit_when_asked"]

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


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
