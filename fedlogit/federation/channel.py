"""What is sent: every message is booked, and adversaries' predictions are falsified on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedlogit.aggregation.attacks import false_logits
from fedlogit.engine.client import Client
from fedlogit.errors import FedlogitError
from fedlogit.federation.ledger import Ledger
from fedlogit.rng import torch_rng
from fedlogit.spec import RunSpec

__all__ = ["Channel", "Senders"]

_PREDICTIONS = ("logits", "auxiliary_logits")  # kinds of messages that adversaries may falsify


@dataclass(frozen=True)
class Senders:
    """Who sends in a round.

    Attributes:
        clients: Those present.
        honest: The least number of an adversary: all clients below it are honest.
        round: The round, from 1.
    """

    clients: Sequence[Client]
    honest: int
    round: int

    @property
    def adversaries(self) -> list[tuple[int, Client]]:
        """The present adversaries, each with its place among `clients`."""
        return [(i, c) for i, c in enumerate(self.clients) if c.index >= self.honest]


class Channel:
    """Messages between clients and server, and between peers, as `Federation` documents them.

    Attributes:
        ledger: Bytes sent.
    """

    def __init__(self, spec: RunSpec) -> None:
        """Send as a run's settings say."""
        self.ledger = Ledger()
        self._spec = spec
        self._falsified = 0  # the last round in which an adversary sent predictions

    def uplink(
        self, kind: str, messages: torch.Tensor, senders: Senders, bits: int | None
    ) -> torch.Tensor:
        """Book a message of each client to the server; return what the server reads.

        Args:
            kind: What the message is: ``logits``, ``model``, ``votes``, … Of logits the server
                reads what clients claim (see `claimed`).
            messages: A row a client, (clients, …).
            senders: The clients.
            bits: Bits that an element takes when sent; None is its dtype's size.
        """
        sent = self.claimed(messages, kind, senders) if kind in _PREDICTIONS else messages
        self.ledger.up(kind, sent, bits=bits)
        return sent

    def claimed(self, logits: torch.Tensor, kind: str, senders: Senders) -> torch.Tensor:
        """Return clients' logits as they send them: false ones of adversaries that falsify.

        Args:
            logits: Of the senders, (clients, n, classes), or (clients, n, T, classes).
            kind: What is sent, which is part of the address of what is random about it.
            senders: The clients.

        Returns:
            Like `logits`, and `logits` itself where `spec.adversaries` falsifies no predictions.
        """
        how = self._spec.adversaries
        if how is None or not how.of_predictions:
            return logits
        sent = logits.clone()
        for place, client in senders.adversaries:
            address = f"false_logits/{kind}", client.index, senders.round
            sent[place] = false_logits(logits[place], how, torch_rng(self._spec.seed, *address))
            self._falsified = senders.round
        return sent

    def check_attack(self, senders: Senders) -> None:
        """Refuse a round whose messages an attack on predictions passed by, once it is done.

        A method's first rounds may send nothing at all.

        Raises:
            FedlogitError: if clients sent messages, adversaries too, and none was of predictions.
        """
        how, round_ = self._spec.adversaries, senders.round
        if how is None or not how.of_predictions or self._falsified == round_:
            return
        sent = sorted(self.ledger.sent_up(round_))
        if sent and senders.adversaries:
            raise FedlogitError(
                f"method {self._spec.method.name}: adversaries.attack = {how.attack!r} changed no"
                f" message of round {round_}, in which clients sent {', '.join(sent)}; send"
                f" predictions as {' or '.join(_PREDICTIONS)}, or make messages of fed.claimed(…)"
            )
