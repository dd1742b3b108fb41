"""The round that FedAvg, ShapFed and CELM share: one model, clients weighed (CELM §3.1)."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import torch

from fedlogit.errors import Diverged, FedlogitError
from fedlogit.federation import Federation, State
from fedlogit.methods.base import Method

__all__ = [
    "ModelFederation",
    "check_shares",
    "model_message",
    "models_sent",
    "send_buffers",
]


class ModelFederation(Method):
    """The server broadcasts a model, clients train it, the server averages what they return.

    All clients start from the server's initial model w_g^(0). What differs between methods is how
    much each client's model counts, eq. 2: w_g = Σ_i c_i w_i. Bytes are those of dense float32
    models both ways, with floating buffers such as batch-norm statistics.

    Absent clients: those present receive the global model, and the average is of theirs alone.
    Who comes late, or again, starts from the global model that it then receives.
    """

    global_model: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True

    def init(self, fed: Federation) -> None:
        """Give every client w_g^(0)."""
        assert fed.server is not None
        fed.broadcast(fed.server.state())

    def round(self, fed: Federation, r: int) -> None:
        """Do a round of eq. 2."""
        assert fed.server is not None
        self.broadcast(fed, fed.server.state())
        self.train(fed)
        fed.uplink("model", models_sent(fed))
        shares = check_shares(self.contributions(fed), self.name)
        fed.contribute(shares)
        fed.server.load(fed.merge(shares))

    def broadcast(self, fed: Federation, model: State) -> None:
        """Send the global model to every client."""
        fed.downlink("model", model_message(model))
        fed.broadcast(model)

    def train(self, fed: Federation) -> None:
        """Let every client train on what it has."""
        fed.train_private()

    @abstractmethod
    def contributions(self, fed: Federation) -> list[float]:
        """Return c_i of `fed.clients`, which sum to 1, from the models they have just trained."""


def model_message(model: State, left_out: torch.Tensor | None = None) -> torch.Tensor:
    """Return the numbers that a model's message holds, but for the entries of `left_out`."""
    vector = model.vector if left_out is None else model.vector[~left_out]
    return torch.cat([vector, model.buffers])


def models_sent(fed: Federation) -> torch.Tensor:
    """Return what stands for the clients' models where they are sent, (clients, numbers), all 0.

    Only the size counts: the server reads the models themselves (`Federation.merge`), and copies
    would take as much memory as all models.
    """
    numbers = len(model_message(fed.clients[0].state()))
    return torch.zeros(1).expand(len(fed.clients), numbers)


def send_buffers(fed: Federation) -> None:
    """Send every client's floating buffers beside its update, which has parameters alone."""
    buffers = torch.stack([client.state().buffers for client in fed.clients])
    if buffers.numel():
        fed.uplink("update", buffers)


def check_shares(shares: list[float], method: str) -> list[float]:
    """Return contributions that are finite, not negative, and sum to 1, to rounding (CELM, eq. 2).

    Raises:
        Diverged: if one is not finite, as those of models that are not.
        FedlogitError: if they are negative or sum to something else; a wrong weighting must not
            pass as a result.
    """
    if not all(map(math.isfinite, shares)):
        raise Diverged(f"method {method}: contributions {shares} are not finite")
    total = sum(shares)
    if min(shares) < 0:
        raise FedlogitError(f"method {method}: contributions {shares} are negative for a client")
    if not abs(total - 1) < 1e-6:
        raise FedlogitError(f"method {method}: contributions {shares} sum to {total}, not to 1")
    return shares
