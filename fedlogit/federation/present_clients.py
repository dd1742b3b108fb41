"""Which clients are present in a round, and where their rows are among those of all clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from fedlogit.engine.client import Client
from fedlogit.spec import RunSpec

__all__ = ["PresentClients"]


class PresentClients:
    """Which of a federation's clients are present, as `Federation` documents it.

    Attributes:
        all_clients: All clients that exist.
        clients: Those present, in the same order.
        first_rounds: The first round in which a client is present, by its number; empty where all
            always are.
    """

    def __init__(self, clients: Sequence[Client], spec: RunSpec) -> None:
        """Begin with all clients present.

        Args:
            clients: All that exist, in the order of their numbers.
            spec: The run's settings, of which `participation` says who is present.
        """
        self.all_clients = list(clients)
        self.clients = self.all_clients
        self._participation, self._seed = spec.participation, spec.seed
        self.first_rounds: dict[int, int] = {}
        if spec.participation is not None:
            first_rounds = spec.participation.first_rounds
            self.first_rounds = first_rounds(len(self.all_clients), spec.rounds, spec.seed)

    @property
    def complete(self) -> bool:
        """Whether all clients are present."""
        return len(self.clients) == len(self.all_clients)

    def start_round(self, round_: int) -> None:
        """Make those clients present that take part in round `round_`, from 1."""
        if self._participation is None:
            return
        present = set(self._participation.present(round_, len(self.all_clients), self._seed))
        self.clients = [client for client in self.all_clients if client.index in present]

    def end_rounds(self) -> None:
        """Make all clients present after the last round."""
        self.clients = self.all_clients

    @contextmanager
    def restricted_to(self, clients: Sequence[Client]) -> Iterator[None]:
        """Make only these clients present within a ``with``, also if it ends by an exception."""
        before, self.clients = self.clients, list(clients)
        try:
            yield
        finally:
            self.clients = before

    def present_indices(self) -> torch.Tensor:
        """Return the places of `clients` in `all_clients`, int64 (clients,), on the CPU."""
        places = {id(client): place for place, client in enumerate(self.all_clients)}
        return torch.tensor([places[id(client)] for client in self.clients])

    def scatter_rows(self, rows: torch.Tensor, absent: float) -> torch.Tensor:
        """Return a row for each of `all_clients`: those of `clients`, and `absent` elsewhere.

        Args:
            rows: (clients, …).
            absent: What rows of the absent are filled with.

        Returns:
            (clients that exist, …), of the dtype and on the device of `rows`.
        """
        placed = rows.new_full((len(self.all_clients), *rows.shape[1:]), absent)
        placed[self.present_indices()] = rows
        return placed

    def gather_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows of `clients` from those of `all_clients`; all of them as they are.

        Args:
            rows: (clients that exist, …).
        """
        return rows if self.complete else rows[self.present_indices()]
