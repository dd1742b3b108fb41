"""What is sent: every message is booked; predictions may be falsified or rounded on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from fedlogit.aggregation.attacks import false_logits
from fedlogit.engine.client import Client
from fedlogit.errors import FedlogitError
from fedlogit.federation.ledger import Ledger
from fedlogit.federation.quantizer import quantize
from fedlogit.federation.shape_checks import check_message, check_rows
from fedlogit.rng import torch_rng
from fedlogit.spec import RunSpec

__all__ = ["Channel", "Senders"]

_PREDICTIONS = ("logits", "auxiliary_logits")  # kinds of messages that adversaries may falsify
_ROUNDED = (*_PREDICTIONS, "probabilities")  # and that quantization rounds
_NEARLY = 1e-4  # how far from 1 floats sum that are a distribution


@dataclass(frozen=True)
class Senders:
    """Who sends in a round.

    Attributes:
        clients: Those present.
        first_adversary: The least number of an adversary: all clients below it are honest.
        round: The round, from 1.
    """

    clients: Sequence[Client]
    first_adversary: int
    round: int

    @property
    def adversaries(self) -> list[tuple[int, Client]]:
        """The present adversaries, each with its place among `clients`."""
        return [(i, c) for i, c in enumerate(self.clients) if c.index >= self.first_adversary]


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
        self._rounded = 0  # the last round in which clients sent predictions rounded

    def uplink(
        self, kind: str, messages: torch.Tensor, senders: Senders, bits: int | None
    ) -> torch.Tensor:
        """Book a message of each sender to the server; see `Federation.uplink`."""
        self._check_rows("uplink", kind, messages, senders)
        sent = self.claimed(messages, kind, senders) if kind in _PREDICTIONS else messages
        return self._send_up(kind, sent, bits, self.ledger.up)

    def downlink(
        self,
        kind: str,
        message: torch.Tensor,
        clients: int,
        receivers: int | None,
        bits: int | None,
        distributions: bool,
    ) -> torch.Tensor:
        """Book a message to `receivers`, or to all `clients` present; see `Federation.downlink`."""
        axes = self._axes if kind in _ROUNDED and receivers is None else None
        check_message(message, self._call("downlink", kind), clients, axes)
        receivers = clients if receivers is None else receivers
        read = self._send(kind, message, bits, partial(self.ledger.down, clients=receivers))
        rounded = read is not message
        return _with_sums_of(message, read) if distributions and rounded else read

    def exchange(
        self, kind: str, messages: torch.Tensor, senders: Senders, links: int | None
    ) -> torch.Tensor:
        """Book a message of each sender to other clients; see `Federation.exchange`."""
        self._check_rows("exchange", kind, messages, senders)
        book = partial(self.ledger.exchange, links=links)
        return self._send_up(kind, messages, None, book)

    def _send_up(
        self, kind: str, values: torch.Tensor, bits: int | None, book: Callable[..., None]
    ) -> torch.Tensor:
        """Send what clients say, as `_send` does, and note whether any of it was rounded."""
        read = self._send(kind, values, bits, book)
        if read is not values:
            self._rounded = self.ledger.round
        return read

    def _send(
        self, kind: str, values: torch.Tensor, bits: int | None, book: Callable[..., None]
    ) -> torch.Tensor:
        """Book values as they are sent; return them as they are read, rounded if the spec says."""
        how = self._spec.quantization
        if how is None or kind not in _ROUNDED or bits is not None:
            book(kind, values, bits=bits)
            return values
        message = quantize(values, how)
        for part, width in message.parts:
            book(kind, part, bits=width)
        return message.read

    def claimed(self, logits: torch.Tensor, kind: str, senders: Senders) -> torch.Tensor:
        """Return the senders' logits as they send them; see `Federation.claimed`."""
        self._check_rows("claimed", kind, logits, senders)
        how = self._spec.adversaries
        if how is None or not how.of_predictions:
            return logits
        sent = logits.clone()
        for place, client in senders.adversaries:
            address = f"false_logits/{kind}", client.index, senders.round
            sent[place] = false_logits(logits[place], how, torch_rng(self._spec.seed, *address))
            self._falsified = senders.round
        return sent

    def _check_rows(self, operation: str, kind: str, messages: object, senders: Senders) -> None:
        """Refuse messages of clients that are no tensor, or predictions not of each client."""
        of_each = operation == "claimed" or kind in _ROUNDED
        call = self._call(operation, kind)
        check_rows(messages, call, len(senders.clients), of_each=of_each)

    def _call(self, operation: str, kind: str) -> str:
        """Return which method calls an operation for which messages, as errors name it."""
        return f"method {self._spec.method.name}: fed.{operation} of {kind!r}"

    @property
    def _axes(self) -> int:
        """How many axes predictions have: (points, classes), or (points, T, classes) of a text."""
        return 2 if self._spec.text is None else 3

    def check_round(self, senders: Senders) -> None:
        """Refuse a round, once it is done, whose messages an attack or quantization passed by.

        A method's first rounds may send nothing at all. Where bytes are only counted, messages may
        be those of a round before, and nobody reads them.

        Raises:
            FedlogitError: if clients sent messages, and none was of predictions.
        """
        if self._spec.ledger_only:
            return
        if sent := sorted(self.ledger.sent_up(senders.round)):
            self._check_attack(senders, sent)
            self._check_quantization(senders.round, sent)

    def _check_quantization(self, round_: int, sent: Sequence[str]) -> None:
        how = self._spec.quantization
        if how is not None and self._rounded != round_:
            raise FedlogitError(
                f"method {self._spec.method.name}: quantization.format = {how.format!r} rounded no"
                f" message of round {round_}, in which clients sent {', '.join(sent)}; send"
                f" predictions as {', '.join(_ROUNDED[:-1])} or {_ROUNDED[-1]}, without bits=…"
            )

    def _check_attack(self, senders: Senders, sent: Sequence[str]) -> None:
        how, round_ = self._spec.adversaries, senders.round
        if how is None or not how.of_predictions or self._falsified == round_:
            return
        if senders.adversaries:
            raise FedlogitError(
                f"method {self._spec.method.name}: adversaries.attack = {how.attack!r} changed no"
                f" message of round {round_}, in which clients sent {', '.join(sent)}; send"
                f" predictions as {' or '.join(_PREDICTIONS)}, or make messages of fed.claimed(…)"
            )


def _with_sums_of(sent: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
    """Return rounded rows, (…, classes), scaled to the sums that they had before.

    A row's sum is its weight in the loss. One of a distribution is 1, whatever rounding made of
    floats that sum to nearly 1; a row of zeros stays one.
    """
    own, total = (rows.sum(-1, keepdim=True) for rows in (sent, read))
    scaled = torch.where(total > 0, read / total, read)
    return torch.where((own - 1).abs() <= _NEARLY, scaled, scaled * own)
