"""Progress bars: of a run, and of a job that goes through clients once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from fedlogit.spec import RunSpec

__all__ = ["Progress", "clients_bar"]


class Progress:
    """A bar of rounds that also tells how far the current round is, for rounds of many minutes."""

    def __init__(self, spec: RunSpec, show: bool) -> None:
        name = f"{spec.dataset} {spec.partition} {spec.method.name} seed {spec.seed}"
        self._bar = tqdm(
            total=spec.rounds, desc=name, unit="round", disable=not show, mininterval=1
        )
        self._stages = 0
        self._tested: list[str] = []

    def stage(self) -> None:
        """Count a client that finished a stage of the round."""
        self._stages += 1
        told = [*self._tested, f"{self._stages} client stages"]
        self._bar.set_postfix_str(", ".join(told), refresh=False)
        self._bar.update(0)

    def rounds(self, rows: list[dict[str, Any]]) -> None:
        """Show the rounds done, and the latest accuracy with the round in which it was measured."""
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
    """Show a bar of clients; yield what to call after each one."""
    name = f"{spec.dataset} {spec.partition} clients seed {spec.seed}"
    with tqdm(total=spec.clients, desc=name, unit="client", disable=not show) as bar:

        def advance() -> None:
            bar.update()

        yield advance
