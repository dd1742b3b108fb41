"""FedDF with model fusion in every round (Lin et al. 2020; TallyTrain Table 2)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from fedlogit.aggregation.average import average_logits, average_probabilities
from fedlogit.federation import Federation
from fedlogit.methods.model_federation import ModelFederation
from fedlogit.methods.public_probes import check_probing
from fedlogit.spec import RunSpec

__all__ = ["FedDFFusion"]


class FedDFFusion(ModelFederation):
    """FedAvg whose average then learns what the averaged models predict together.

    `feddf` is the one-shot form, in which the student has an architecture of its own.

    Attributes:
        probes_per_round: Public samples of the server's step.
        warm_up: W, rounds before the server distils.
        target: ``logits``, softmax of the mean logits, as the original's ``avg_logits``; or the
            mean of ``probabilities``.
    """

    name: ClassVar[str] = "feddf_fusion"
    needs_public: ClassVar[bool] = True
    sequences: ClassVar[bool] = True
    foreign_public: ClassVar[bool] = True

    probes_per_round: Annotated[int, Field(gt=0)] = 16
    warm_up: Annotated[int, Field(ge=0)] = 300
    target: Literal["logits", "probabilities"] = "logits"

    def check(self, spec: RunSpec) -> None:
        """Refuse settings that do not fit the run."""
        check_probing(self.probes_per_round, self.warm_up, spec)

    def contributions(self, fed: Federation) -> list[float]:
        """Return c_i = 1/N."""
        return [1 / len(fed.clients)] * len(fed.clients)

    def round(self, fed: Federation, r: int) -> None:
        """Fuse, then take one step on the ensemble's predictions.

        The original distils for up to 10,000 steps a round, which 3,000 rounds rule out.
        """
        super().round(fed, r)
        if r > self.warm_up:
            assert fed.server is not None
            probes = fed.probes(self.probes_per_round)
            logits = fed.logits(probes)
            targets = self._targets(logits)
            right = float(fed.accuracy(targets, probes))
            if right == right:  # NaN where nobody knows the labels
                fed.log(target_accuracy=right)
            fed.distil(probes, targets, once=True, learners=[fed.server])

    def _targets(self, logits: torch.Tensor) -> torch.Tensor:
        if self.target == "probabilities":
            return average_probabilities(logits)
        return average_logits(logits).softmax(-1)
