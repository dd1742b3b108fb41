"""Who is there: the clients that take part now, and where their rows are among those of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from fedlogit.engine.client import Client
from fedlogit.spec import RunSpec

__all__ = ["Attendance"]


class Attendance:
    """Which of a federation's clients take part; see `Federation` for its verbs.

    Attributes:
        everybody: All clients that exist.
        clients: Those of them that take part now, in the same order.
        first_rounds: The round in which a client is there for the first time, by its number; empty
            where everybody always is.
    """

    def __init__(self, clients: Sequence[Client], spec: RunSpec) -> None:
        """Begin with all clients there.

        Args:
            clients: All that exist, in the order of their numbers.
            spec: The run's settings, of which `participation` says who is there.
        """
        self.everybody = list(clients)
        self.clients = self.everybody
        self._participation, self._seed = spec.participation, spec.seed
        self.first_rounds: dict[int, int] = {}
        if spec.participation is not None:
            first_rounds = spec.participation.first_rounds
            self.first_rounds = first_rounds(len(self.everybody), spec.rounds, spec.seed)

    @property
    def complete(self) -> bool:
        """Whether all clients are there."""
        return len(self.clients) == len(self.everybody)

    def start_round(self, round_: int) -> None:
        """Let those be there who are in round `round_`, from 1."""
        if self._participation is None:
            return
        there = set(self._participation.present(round_, len(self.everybody), self._seed))
        self.clients = [client for client in self.everybody if client.index in there]

    def end_rounds(self) -> None:
        """Let everybody be there, once the last round is done."""
        self.clients = self.everybody

    @contextmanager
    def restricted_to(self, clients: Sequence[Client]) -> Iterator[None]:
        """Let only these clients be there for a while, also if it ends by an exception."""
        before, self.clients = self.clients, list(clients)
        try:
            yield
        finally:
            self.clients = before

    def present_indices(self) -> torch.Tensor:
        """Return the places of `clients` in `everybody`, int64 (clients,), on the CPU."""
        places = {id(client): place for place, client in enumerate(self.everybody)}
        return torch.tensor([places[id(client)] for client in self.clients])

    def scatter_rows(self, rows: torch.Tensor, absent: float) -> torch.Tensor:
        """Return a row for each of `everybody`: those of `clients`, and `absent` elsewhere.

        Args:
            rows: (clients, …).
            absent: What rows of the absent are filled with.

        Returns:
            (clients that exist, …), of the dtype and on the device of `rows`.
        """
        placed = rows.new_full((len(self.everybody), *rows.shape[1:]), absent)
        placed[self.present_indices()] = rows
        return placed

    def gather_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows of `clients` from those of `everybody`; `rows` itself if all are there.

        Args:
            rows: (clients that exist, …).
        """
        return rows if self.complete else rows[self.present_indices()]
