"""MM: a trained aggregator of the concatenated logits (Who to Trust §3.1.2, A.2)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field

from fedlogit.aggregation.meta_model import Aggregator, fit_and_predict
from fedlogit.federation import Federation
from fedlogit.methods.logit_federation import LogitFederation
from fedlogit.rng import derive

__all__ = ["MetaModel"]


class MetaModel(LogitFederation):
    """The Meta-Model aggregator, trained from scratch every round because clients have changed.

    Attributes:
        aggregator: ``mlp``, ``forest`` or ``boosting`` (the paper names all three).
        per_class: Labelled samples of each class, from the union of the private sets, that it
            is trained on. Their owners also train on them, so their logits are optimistic there.
            300 of each of 10 classes are the paper's 3,000 images.
    """

    name: ClassVar[str] = "meta_model"

    aggregator: Aggregator = "mlp"
    per_class: Annotated[int, Field(gt=0)] = 300

    def aggregate(self, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
        """Return softmax(A(h(x))), eq. 3-4."""
        known = self._known(fed)
        labels = fed.labels(known)
        known_logits = fed.uplink("auxiliary_logits", fed.logits(known))
        if fed.round == 1:
            # Every sample's label is sent once, by the client that owns it.
            fed.uplink("auxiliary_labels", labels[None], bits=8)
        seed = derive(fed.spec.seed, "meta_model", fed.round)
        return fit_and_predict(self.aggregator, known_logits, labels, logits, fed.classes, seed)

    def _known(self, fed: Federation) -> torch.Tensor:
        """Return up to `per_class` samples of each class from the union of the private sets."""
        labels = fed.data.labels.cpu().numpy()[fed.private_samples]
        generator = fed.rng("auxiliary")
        chosen = [
            generator.permutation(fed.private_samples[labels == c])[: self.per_class]
            for c in range(fed.classes)
        ]
        return torch.as_tensor(np.concatenate(chosen), dtype=torch.int64, device=fed.data.device)
