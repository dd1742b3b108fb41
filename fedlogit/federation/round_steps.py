"""Long steps of a round, which a run that was stopped between two of them does not repeat.

A round of a one-shot method may take hours. A checkpoint within it has the models as the last step
left them, and of each step what it returned, sent and logged. A run that goes on does the round
anew, with these in place of the steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from fedlogit.errors import FedlogitError
from fedlogit.federation.ledger import Entry, Ledger
from fedlogit.federation.round_log import RoundLog

__all__ = ["RoundSteps", "StepRecord"]


@dataclass(frozen=True)
class StepRecord:
    """What is left of a step, besides models.

    Attributes:
        returned: Its tensors, by name.
        sent: The messages that it booked.
        columns: The columns of the round that it logged.
    """

    returned: dict[str, torch.Tensor]
    sent: list[Entry]
    columns: dict[str, float]


class RoundSteps:
    """The steps of the round that is going on.

    Attributes:
        done: Those that are done, by name, in order; empty between rounds.
        restored: Those that a checkpoint had, until the round that goes on comes to them.
        seconds_before: How long a round that goes on had taken when it was saved.
        after_step: Called after each step that was done and not restored; it may end the process.
    """

    def __init__(self, method: str, ledger: Ledger, log: RoundLog) -> None:
        """Begin without steps.

        Args:
            method: Its name, for messages.
            ledger: Where steps book messages.
            log: Where they log columns.
        """
        self.done: dict[str, StepRecord] = {}
        self.restored: dict[str, StepRecord] = {}
        self.seconds_before = 0.0
        self.after_step: Callable[[], None] = lambda: None
        self._began = time.perf_counter()
        self._method, self._ledger, self._log = method, ledger, log
        self._doing = ""

    @property
    def seconds(self) -> float:
        """How long the round has taken, in all attempts at it."""
        return self.seconds_before + time.perf_counter() - self._began

    def begin(self) -> bool:
        """Begin a round; return whether it goes on where it was stopped."""
        self.done = {}
        self._began = time.perf_counter()
        return bool(self.restored)

    def clear(self) -> None:
        """Forget the steps: their round is over."""
        self.done, self.restored, self.seconds_before = {}, {}, 0.0

    def once(
        self, name: str, step: Callable[[], Mapping[str, torch.Tensor]]
    ) -> dict[str, torch.Tensor]:
        """Do a step, or take what a checkpoint has of it; see `Federation.once`."""
        self._check(name)
        if record := self.restored.pop(name, None):
            self.done[name] = record
            self._ledger.rebook(record.sent)
            self._log.log(**record.columns)
        else:
            self.done[name] = record = self._do(name, step)
            self.after_step()
        return record.returned

    def _check(self, name: str) -> None:
        if self._doing:
            raise FedlogitError(
                f"method {self._method}: fed.once({name!r}) within fed.once({self._doing!r}); do"
                " one after the other"
            )
        if name in self.done:
            raise FedlogitError(
                f"method {self._method}: fed.once({name!r}) twice in a round; give each step a name"
                " of its own"
            )

    def _do(self, name: str, step: Callable[[], Mapping[str, torch.Tensor]]) -> StepRecord:
        before = self._log.columns
        self._doing = name
        try:
            with self._ledger.noting() as sent:
                returned = dict(step())
        finally:
            self._doing = ""
        columns = self._log.columns
        new = {key: value for key, value in columns.items() if before.get(key) != value}
        return StepRecord(returned, list(sent), new)
