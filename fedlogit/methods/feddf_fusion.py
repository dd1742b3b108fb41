"""FedDF with model fusion in every round (Lin et al. 2020; TallyTrain Table 2)."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from fedlogit.aggregation.average import average_logits, average_probabilities
from fedlogit.errors import FedlogitError
from fedlogit.federation import Federation
from fedlogit.methods.model_federation import ModelFederation
from fedlogit.methods.probe_checks import check_probing
from fedlogit.spec import RunSpec

__all__ = ["FedDFFusion"]


class FedDFFusion(ModelFederation):
    """FedAvg whose average then learns what the averaged models predict together.

    `feddf` is the one-shot form, in which the student has an architecture of its own.

    Absent clients: the average and the ensemble are of those present.

    Attributes:
        probes_per_round: Public samples of the server's step.
        warm_up: W, rounds before the server distils.
        server_steps: Steps of the server in a round, each on probes of its own. The paper leaves
            them open; the original takes up to 10,000, which 3,000 rounds rule out. 0 is FedAvg.
        server_optimizer: Whether the server's optimizer is ``kept`` from round to round, as a
            peer's is, or is ``new`` in each, as in the original. The first step of a new AdamW
            moves every parameter by the whole learning rate, whatever its gradient's size. With
            `optimizer.reset_every: phase` every step has a new one.
        target: ``logits``, softmax of the mean logits, as the original's ``avg_logits``; or the
            mean of ``probabilities``.
    """

    name: ClassVar[str] = "feddf_fusion"
    needs_public: ClassVar[bool] = True
    supports_sequences: ClassVar[bool] = True
    supports_external_public: ClassVar[bool] = True
    fixed_messages: ClassVar[bool] = True

    probes_per_round: Annotated[int, Field(gt=0)] = 16
    warm_up: Annotated[int, Field(ge=0)] = 300
    server_steps: Annotated[int, Field(ge=0)] = 1
    server_optimizer: Literal["kept", "new"] = "kept"
    target: Literal["logits", "probabilities"] = "logits"

    @property
    def distils_soft_targets(self) -> bool:
        """What the averaged models predict together, if the server takes steps."""
        return self.server_steps > 0

    def check(self, spec: RunSpec) -> None:
        """Refuse settings that do not fit the run, or without effect in it."""
        self._check_effect()
        check_probing(self.probes_per_round, self.warm_up, spec)
        public = spec.public.size if spec.public else 0
        if self.server_steps * self.probes_per_round > public:
            raise FedlogitError(
                f"method {self.name}: server_steps = {self.server_steps}: at"
                f" {self.probes_per_round} probes each they need more than the {public} public"
                " samples"
            )
        if "server_optimizer" in self.changed() and spec.optimizer.reset_every == "phase":
            raise FedlogitError(
                f"method {self.name}: server_optimizer = {self.server_optimizer!r}: with"
                " optimizer.reset_every = 'phase' every step has a new one; leave it out"
            )

    def _check_effect(self) -> None:
        """Refuse what is about steps that the server does not take.

        But for `warm_up`: a paper gives it by scale to all its variants, also to that without steps
        (TallyTrain's table 2).
        """
        idle = ("probes_per_round", "server_optimizer", "target")
        for key in idle if not self.server_steps else ():
            if key in self.changed():
                raise FedlogitError(
                    f"method {self.name}: {key} = {getattr(self, key)!r}: has no effect with"
                    " server_steps = 0; leave it out"
                )

    def contributions(self, fed: Federation) -> list[float]:
        """Return c_i = 1/N."""
        return [1 / len(fed.clients)] * len(fed.clients)

    def round(self, fed: Federation, r: int) -> None:
        """Fuse, then let the average learn the ensemble's predictions."""
        super().round(fed, r)
        if r > self.warm_up and self.server_steps:
            self.distil(fed)

    def distil(self, fed: Federation) -> None:
        """Take the server's steps on what the models that were averaged predict together."""
        assert fed.server is not None
        probes = fed.probes(self.server_steps * self.probes_per_round)
        targets = self._targets(fed.logits(probes))
        right = float(fed.accuracy(targets, probes))
        if not math.isnan(right):  # NaN where nobody knows the labels
            fed.log(target_accuracy=right)
        if self.server_optimizer == "new":
            fed.server.renew_optimizer()
        batches = (tensor.split(self.probes_per_round) for tensor in (probes, targets))
        for points, wanted in zip(*batches, strict=True):
            fed.distil(points, wanted, once=True, learners=[fed.server])

    def _targets(self, logits: torch.Tensor) -> torch.Tensor:
        if self.target == "probabilities":
            return average_probabilities(logits)
        return average_logits(logits).softmax(-1)
