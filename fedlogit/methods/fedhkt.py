"""FedHKT: ensemble distillation weighted by confidence (Deng et al. 2023; FedOL eq. 14)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch

from fedlogit.aggregation import Targets
from fedlogit.aggregation.client_groups import similar_clients
from fedlogit.aggregation.confidence import (
    class_confidence,
    entropies,
    entropy_weights,
    mixture,
)
from fedlogit.aggregation.targets import as_targets
from fedlogit.errors import FedlogitError
from fedlogit.federation import Client, Federation
from fedlogit.frozen_config import NonNegativeInt
from fedlogit.methods.model_federation import model_message, models_sent
from fedlogit.methods.one_shot import OneShot
from fedlogit.spec import RunSpec

__all__ = ["FedHKT"]


class FedHKT(OneShot):
    """FedHKT: the server learns from clients by their confidence; by default nothing else.

    In one round that is what FedOL is without pseudo-labels. The original also groups clients of
    similar data, which share models inside a group ("client-edge"), and lets the server select what
    it learns ("server-assisted knowledge selection"). No code of it is public and its abstract has
    no details, so both are ours: switches for runs of several rounds.

    Absent clients: λ is a softmax over those present, and groups are of them.

    Attributes:
        groups: Number of groups of clients, formed anew in every round by k-means on C²_k (FedOL
            eq. 10). Inside a group models of one architecture are averaged before they predict.
            0 shares no models.
        selection: From the second round on, leave out samples on which the server's model was surer
            (of lower entropy) than the ensemble.
    """

    name: ClassVar[str] = "fedhkt"
    added: ClassVar[frozenset[str]] = frozenset({"groups", "selection"})

    groups: NonNegativeInt = 0
    selection: bool = False

    @property
    def changes_clients(self) -> bool:
        """Whether groups share models, or a subclass does something else."""
        return bool(self.groups) or type(self).after_training is not FedHKT.after_training

    @property
    def sends_predictions(self) -> bool:
        """Logits alone, unless groups share models."""
        return not self.groups

    @property
    def sends_soft_predictions(self) -> bool:
        """Logits, in every round, also beside models."""
        return True

    @property
    def distils_soft_targets(self) -> bool:
        """The clients' mixture, and in several rounds what the server predicts."""
        return True

    def check(self, spec: RunSpec) -> None:
        """Refuse what takes several rounds in a run of one."""
        for name in ("groups", "selection"):
            if spec.rounds == 1 and (value := getattr(self, name)):
                raise FedlogitError(
                    f"method fedhkt: {name} = {value} is for runs of several rounds; leave it out,"
                    " or give rounds = 2 or more"
                )

    def after_training(self, fed: Federation) -> None:
        """Average models inside groups of similar clients."""
        if not self.groups:
            return
        for members in self._groups(fed):
            for alike in _by_architecture(members):
                with fed.restricted_to(alike):
                    fed.uplink("model", models_sent(fed))
                    merged = fed.merge()
                    fed.downlink("model", model_message(merged))
                    fed.broadcast(merged)

    def _groups(self, fed: Federation) -> list[list[Client]]:
        """Return the clients of each group; who is with whom does not depend on their order."""
        clients = sorted(fed.clients, key=lambda client: client.index)
        logits = fed.logits(fed.public, clients)
        confidence = fed.uplink("confidence", class_confidence(logits).float())
        if fed.spec.ledger_only:  # all are alike, and each sends its model whatever the groups
            return [clients]
        found = similar_clients(confidence, self.groups, fed.rng("groups", fed.round))
        fed.log(groups=len(found))
        return [[clients[place] for place in places] for places in found]

    def distil_server(
        self, fed: Federation, logits: torch.Tensor, targets: Targets | None = None
    ) -> None:
        """Train the server's model, from the second round on where the ensemble knows better."""
        if not self.selection or fed.round == 1:
            super().distil_server(fed, logits, targets)
            return
        found = as_targets(self.targets(logits), logits, self.name)
        ensemble = -torch.special.xlogy(found.distributions, found.distributions).sum(1)
        known = entropies(fed.server_logits(fed.public)[None])[0] >= ensemble
        fed.log(selected_share=float(known.double().mean()))
        if known.any():  # else the server has nothing to learn in this round
            super().distil_server(fed, logits, replace(found, weights=found.weights * known))

    def targets(self, logits: torch.Tensor) -> torch.Tensor:
        """Return Σ_k λ_k(x) p_k(x), with λ = softmax of negative entropies."""
        return mixture(logits, entropy_weights(logits)).float()


def _by_architecture(clients: list[Client]) -> list[list[Client]]:
    """Return clients whose models can be averaged, list by list."""
    found: dict[str, list[Client]] = {}
    for client in clients:
        found.setdefault(client.architecture, []).append(client)
    return list(found.values())
