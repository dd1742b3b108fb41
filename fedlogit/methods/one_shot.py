"""The round that FedOL and its baselines share: clients predict, the server learns (FedOL §II)."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import ClassVar

import torch

from fedlogit.aggregation import Targets
from fedlogit.aggregation.confidence import entropy_weights
from fedlogit.aggregation.targets import as_targets
from fedlogit.aggregation.votes import vote_counts
from fedlogit.data import UNKNOWN
from fedlogit.federation import Federation
from fedlogit.methods.base import Method

__all__ = ["OneShot"]


class OneShot(Method):
    """Clients train alone, predict once on the public set, and the server's model learns from it.

    In a run of one round nothing comes back, which is the paper's setting (Table I). In a run of
    several (Figure 2) the server's predictions on the public set go to the clients, who distil
    them; the paper does not say what its multi-round baselines send back.

    Absent clients: who is absent in the round is not in it. In a run of several rounds the server's
    model learns from those present, and only they receive what it predicts.

    A subclass says what the server learns from the clients' logits.
    """

    needs_public: ClassVar[bool] = True
    server_model: ClassVar[bool] = True
    one_shot: ClassVar[bool] = True
    fixed_messages: ClassVar[bool] = True
    exports: ClassVar[frozenset[str]] = frozenset({"aggregation"})
    supports_partial_participation: ClassVar[bool] = True
    supports_external_public: ClassVar[bool] = True

    @property
    def shares_clients(self) -> bool:
        """Unless a subclass has a round of its own, or does something after training."""
        own_round = type(self).round is not OneShot.round
        return super().shares_clients and not own_round and not self.changes_clients

    @property
    def changes_clients(self) -> bool:
        """Whether `after_training` does anything: it is overridden."""
        return type(self).after_training is not OneShot.after_training

    @property
    def sends_predictions(self) -> bool:
        """Logits, in every round that there is."""
        return True

    def round(self, fed: Federation, r: int) -> None:
        """Do one round."""
        fed.once("clients", partial(self._train_clients, fed))
        self.exchange(fed, fed.logits(fed.public))
        if r < fed.spec.rounds:
            answer = fed.downlink("logits", fed.server_logits(fed.public))
            fed.distil(fed.public, answer.softmax(1))

    def _train_clients(self, fed: Federation) -> dict[str, torch.Tensor]:
        """Train the clients; nothing is left of it but their models."""
        fed.train_private()
        self.after_training(fed)
        return {}

    def after_training(self, fed: Federation) -> None:
        """Do what clients do between training and predicting: by default nothing."""

    def exchange(
        self, fed: Federation, logits: torch.Tensor, targets: Targets | None = None
    ) -> None:
        """Send the clients' logits up and let the server's model learn from them."""
        received = fed.uplink("logits", logits)
        _record(fed, received)
        self.distil_server(fed, received, targets)

    def distil_server(
        self, fed: Federation, logits: torch.Tensor, targets: Targets | None = None
    ) -> None:
        """Train the server's model on what is made of the clients' logits."""
        targets = targets or as_targets(self.targets(logits), logits, self.name)
        known = targets.weights > 0
        if fed.public_known:
            fed.log(target_accuracy=fed.accuracy_on_public(targets.distributions, known))
        fed.distil_server(targets)

    @abstractmethod
    def targets(self, logits: torch.Tensor) -> Targets | torch.Tensor:
        """Return what the server shall predict: a pure function of the clients' logits.

        Args:
            logits: On the public set, (clients, points, classes).

        Returns:
            Targets, or distributions (points, classes) of equal weight.
        """


def _record(fed: Federation, logits: torch.Tensor) -> None:
    """Log what the ensemble could know, and keep whom entropy would trust."""
    labels = fed.labels(fed.public)
    right = (logits.argmax(-1) == labels)[:, labels != UNKNOWN]
    if fed.public_known:
        fed.log(
            client_public_accuracy=float(right.double().mean()),
            oracle_accuracy=float(right.any(0).double().mean()),  # some client is right
        )
    fed.log(agreement=_agreement(logits))
    fed.export(
        "aggregation",
        weights=fed.scatter_rows(entropy_weights(logits).float(), absent=0),
        points=fed.public,
        labels=labels,
    )


def _agreement(logits: torch.Tensor) -> float:
    """Return how often two different clients predict the same class; 1 for a single client."""
    predicted = logits.argmax(-1)
    n = len(predicted)
    if n < 2:
        return 1.0
    counts = vote_counts(predicted, logits.shape[-1])
    return float(((counts * (counts - 1)).sum(1) / (n * (n - 1))).mean())
