"""Bytes are counted where they are sent: the ledger gets every message.

A payload table is a sum over the ledger, never a formula; the closed forms of the papers are its
unit tests. Units are bytes; decimal MB or MiB is a matter of the table that prints them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

__all__ = ["Entry", "Ledger", "message_bytes"]

Entry = tuple[str, str, int]
"""A direction, a kind of message, and bytes."""


class Ledger:
    """Bytes by round, direction and kind of message, summed over clients."""

    def __init__(self) -> None:
        self.rounds: dict[int, dict[str, dict[str, int]]] = {}
        self.round = 0
        self._noted: list[Entry] | None = None

    def start(self, round_: int) -> None:
        """Book what follows under round `round_`."""
        self.round = round_

    def up(self, kind: str, payload: torch.Tensor, *, bits: int | None = None) -> None:
        """Book client-to-server messages; `payload` (clients, …) stacks one message a client.

        Args:
            kind: What the message is: ``logits``, ``model``, ``votes``, …
            payload: The numbers sent.
            bits: Bits an element really takes when packed, where that is not its dtype's size.
        """
        row = payload[:1]  # one client's message; of no rows there is none, and no byte
        self._book("up", kind, message_bytes(row, bits) * payload.shape[0])

    def down(
        self, kind: str, payload: torch.Tensor, clients: int, *, bits: int | None = None
    ) -> None:
        """Book one server-to-client message that goes to each of `clients` clients."""
        self._book("down", kind, message_bytes(payload, bits) * clients)

    def exchange(
        self,
        kind: str,
        payload: torch.Tensor,
        *,
        links: int | None = None,
        bits: int | None = None,
    ) -> None:
        """Book what peers send to each other.

        Args:
            kind: What the message is.
            payload: Its numbers, a row a peer.
            links: How many ordered pairs of peers are connected; None is the full mesh, in which
                each of the N peers sends its row to the N-1 others.
            bits: As for `up`.
        """
        peers = payload.shape[0]
        pairs = peers * (peers - 1) if links is None else links
        total = message_bytes(payload[0], bits) * pairs
        self._book("up", kind, total)
        self._book("down", kind, total)

    @contextmanager
    def noting(self) -> Iterator[list[Entry]]:
        """Yield a list to which all is added that is booked meanwhile."""
        noted = self._noted = []
        try:
            yield noted
        finally:
            self._noted = None

    def rebook(self, entries: Sequence[Entry]) -> None:
        """Book entries once more, under the round that it is now."""
        for direction, kind, size in entries:
            self._book(direction, kind, size)

    def _book(self, direction: str, kind: str, size: int) -> None:
        if self._noted is not None:
            self._noted.append((direction, kind, size))
        book = self.rounds.setdefault(self.round, {"up": {}, "down": {}})[direction]
        book[kind] = book.get(kind, 0) + size

    def sent_up(self, round_: int) -> set[str]:
        """Return the kinds of messages that clients sent in a round."""
        return set(self.rounds.get(round_, {}).get("up", {}))

    def of_round(self, round_: int) -> dict[str, int]:
        """Return the columns of `rounds.csv`: totals by direction, and by direction and kind."""
        book = self.rounds.get(round_, {"up": {}, "down": {}})
        columns = {f"bytes_{way}": sum(kinds.values()) for way, kinds in book.items()}
        columns |= {
            f"bytes_{way}.{kind}": size
            for way, kinds in book.items()
            for kind, size in kinds.items()
        }
        return columns

    def totals(self) -> dict[str, dict[str, int]]:
        """Return bytes of the whole run by direction and kind."""
        sums: dict[str, dict[str, int]] = {"up": defaultdict(int), "down": defaultdict(int)}
        for book in self.rounds.values():
            for way, kinds in book.items():
                for kind, size in kinds.items():
                    sums[way][kind] += size
        return {way: dict(kinds) for way, kinds in sums.items()}


def message_bytes(payload: torch.Tensor, bits: int | None = None) -> int:
    """Return the size of one message: its elements as stored, or packed at `bits` each."""
    if bits is None:
        return payload.numel() * payload.element_size()
    return (payload.numel() * bits + 7) // 8
