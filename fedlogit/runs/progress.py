"""Progress of runs: a bar on a terminal, and in a log a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tqdm import tqdm

from fedlogit.spec import RunSpec

__all__ = ["Counter", "RoundProgress", "clients_bar", "counter"]

_BETWEEN = 60.0  # seconds between two lines in a log


class Counter(Protocol):
    """What counts: a bar of tqdm, or `Lines`."""

    n: float
    initial: float

    def update(self, n: float = 1) -> bool | None:
        """Count so many more."""

    def set_postfix_str(self, s: str = "", refresh: bool = True) -> None:
        """Say something behind the count."""

    def write(self, s: str) -> None:
        """Print a line, above the bar if there is one."""

    def close(self) -> None:
        """Leave what was shown as it is."""


class Lines:
    """Counts in lines of a log, which a bar would fill with what only a terminal can overwrite."""

    def __init__(self, total: int, unit: str, name: str = "", done: int = 0) -> None:
        self.n: float = done
        self.initial: float = done
        self._total = total
        self._unit, self._name, self._behind = unit, f"{name}: " if name else "", ""
        self._began = self._printed = time.monotonic()

    def update(self, n: float = 1) -> None:
        """Count so many more; print a line if the last is a minute ago, or nothing is left."""
        self.n += n
        now = time.monotonic()
        if now - self._printed >= _BETWEEN or (n and self.n == self._total):
            self._printed = now
            print(self._line(now - self._began), file=sys.stderr, flush=True)  # noqa: T201

    def _line(self, passed: float) -> str:
        counted = self.n - self.initial
        left = passed / counted * (self._total - self.n) if counted else 0.0
        parts = [
            f"{self._name}{self.n:.0f} of {self._total} {self._unit}s",
            f"{tqdm.format_interval(passed)} passed",
            f"about {tqdm.format_interval(left)} left" if left else "",
            self._behind,
        ]
        return ", ".join(filter(None, parts))

    def set_postfix_str(self, s: str = "", refresh: bool = True) -> None:
        """Say something behind the count, from the next line on."""
        self._behind = s

    def write(self, s: str) -> None:
        """Print a line."""
        print(s, flush=True)  # noqa: T201

    def close(self) -> None:
        """Do nothing: a line stays as it is."""


def counter(total: int, unit: str, name: str = "", *, done: int = 0, show: bool = True) -> Counter:
    """Return what shows how far something is.

    Args:
        total: How many there are.
        unit: Of what, in the singular.
        name: What is counted through.
        done: How many were done before.
        show: Whether to show anything.
    """
    if show and not sys.stderr.isatty():
        return Lines(total, unit, name, done)
    bar: Counter = tqdm(
        total=total, desc=name or None, unit=unit, initial=done, disable=not show, mininterval=1
    )
    return bar


class RoundProgress:
    """A count of rounds that also shows how far the current one is, as some take minutes."""

    def __init__(self, spec: RunSpec, show: bool) -> None:
        name = f"{spec.dataset} {spec.partition} {spec.method.name} seed {spec.seed}"
        self._bar = counter(spec.rounds, "round", name, show=show)
        self._stages = 0
        self._tested: list[str] = []
        self._begun = False

    def stage(self) -> None:
        """Count a client that finished a stage of the round."""
        self._stages += 1
        parts = [*self._tested, f"{self._stages} client stages"]
        self._bar.set_postfix_str(", ".join(parts), refresh=False)
        self._bar.update(0)

    def rounds(self, rows: list[dict[str, Any]]) -> None:
        """Show the rounds done, and the latest accuracy with the round in which it was measured.

        Those of the first call were done before, and say nothing of how long the others take.
        """
        if not self._begun:
            self._begun, self._bar.n, self._bar.initial = True, len(rows), len(rows)
        tested = [row for row in rows if "accuracy" in row][-1:]
        self._tested = [f"accuracy {r['accuracy']:.4f} in round {r['round']}" for r in tested]
        self._stages = 0
        self._bar.set_postfix_str(", ".join(self._tested), refresh=False)
        self._bar.update(len(rows) - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


@contextmanager
def clients_bar(spec: RunSpec, show: bool) -> Iterator[Callable[[], None]]:
    """Show how many clients are done; yield what to call after each one."""
    name = f"{spec.dataset} {spec.partition} clients seed {spec.seed}"
    bar = counter(spec.clients, "client", name, show=show)

    def advance() -> None:
        bar.update()

    try:
        yield advance
    finally:
        bar.close()
