"""MM: a trained aggregator of the concatenated logits (Who to Trust §3.1.2, A.2)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field

from fedlogit.aggregation.average import average_logits
from fedlogit.aggregation.meta_model import Classifier, fit_and_predict
from fedlogit.aggregation.votes import bits_per_vote
from fedlogit.federation import Federation
from fedlogit.methods.logit_federation import LogitFederation
from fedlogit.rng import derive

__all__ = ["MetaModel"]


class MetaModel(LogitFederation):
    """The Meta-Model aggregator, trained from scratch every round because clients have changed.

    Absent clients: A has an input for every logit of every client, so it does not fit other clients
    than those it was trained on: the known weakness of this method. `participation.meta_model` says
    what is done. ``refit``, the default: A has inputs for those present alone. ``pad``: A keeps the
    inputs of all clients; in the place of an absent one is what it last sent, and 0 before it has
    sent anything. (A constant in its place would be ``refit`` but for A's first weights.) Either
    way, a sample trains A from the first round on in which a client that owns it is present, who
    sends its label; as long as no sample has one, the targets are the average's.

    Attributes:
        aggregator: ``mlp``, ``forest`` or ``boosting`` (the paper names all three).
        per_class: Labelled samples of each class, from the union of the private sets, that it
            is trained on. Their owners also train on them, so their logits are optimistic there.
            300 of each of 10 classes are the paper's 3,000 images.
    """

    fixed_width: ClassVar[bool] = True

    aggregator: Classifier = "mlp"
    per_class: Annotated[int, Field(gt=0)] = 300

    def aggregate(self, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
        """Return softmax(A(h(x))), eq. 3-4."""
        samples = self._auxiliary_samples(fed)
        labelled, new = self._labelled(fed, samples)
        every_point = torch.ones_like(fed.public, dtype=torch.bool)
        public = _inputs(fed, "public", logits, every_point)
        if not labelled.any():
            return average_logits(logits).softmax(1)
        sent = fed.uplink("auxiliary_logits", fed.logits(samples[labelled]))
        if len(new):
            bits = bits_per_vote(fed.classes, packed=False)  # a label is a class, as a vote is
            fed.uplink("auxiliary_labels", fed.labels(new)[None], bits=bits)
        auxiliary, labels = _inputs(fed, "known", sent, labelled), fed.labels(samples[labelled])
        seed = derive(fed.spec.seed, "meta_model", fed.round)
        return fit_and_predict(self.aggregator, auxiliary, labels, public, fed.classes, seed)

    def _labelled(
        self, fed: Federation, samples: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return which samples have a label, bool (samples,), and those that had none before.

        Every sample's label is sent once, by the client that owns it, when it is first there.
        """
        state, name = fed.server_state, "meta_model/labelled"
        sent = state.get(name, torch.zeros_like(samples, dtype=torch.bool))
        owned = torch.isin(samples, torch.cat([client.private for client in fed.clients]))
        state[name] = sent | owned
        return state[name], samples[owned & ~sent]

    def _auxiliary_samples(self, fed: Federation) -> torch.Tensor:
        """Return up to `per_class` samples of each class from the union of the private sets."""
        labels = fed.data.labels.cpu().numpy()[fed.private_samples]
        generator = fed.rng("auxiliary")
        chosen = [
            generator.permutation(fed.private_samples[labels == c])[: self.per_class]
            for c in range(fed.classes)
        ]
        return torch.as_tensor(np.concatenate(chosen), dtype=torch.int64, device=fed.data.device)


def _inputs(fed: Federation, name: str, sent: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Return the logits that A sees: of those present, or of all clients as they were last sent.

    Args:
        fed: The federation.
        name: Of what the logits are.
        sent: What those present have sent, (clients, n, classes).
        at: Which samples these n are, bool (samples,).

    Returns:
        `sent`, or with ``pad`` (all clients, n, classes), 0 where a client has never sent any.
    """
    participation = fed.spec.participation
    if participation is None or participation.meta_model == "refit":
        return sent
    key = f"meta_model/{name}"
    if key not in fed.server_state:
        shape = (len(fed.all_clients), len(at), fed.classes)
        fed.server_state[key] = torch.zeros(shape, device=sent.device)
    last_sent = fed.server_state[key]
    rows = last_sent[fed.present_indices]
    rows[:, at] = sent
    last_sent[fed.present_indices] = rows
    return last_sent[:, at]
