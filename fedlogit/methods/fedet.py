"""FedET: weighted consensus with diversity (Cho et al. 2022; FedOL §V-A)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field

from fedlogit.aggregation import Targets
from fedlogit.aggregation.fedet import consensus_with_diversity
from fedlogit.methods.one_shot import OneShot

__all__ = ["FedET"]


class FedET(OneShot):
    """A hard label of the consensus, and softly what those say who disagree with it.

    The original also sends the clients' representation layers up and averages them; here only
    predictions are shared.

    Absent clients: the consensus, and who disagrees with it, are of those present.

    Attributes:
        regularisation: λ of the diversity term (the original's 0.05). 0 leaves hard labels.
    """

    name: ClassVar[str] = "fedet"

    regularisation: Annotated[float, Field(ge=0)] = 0.05

    def targets(self, logits: torch.Tensor) -> Targets:
        """Return the target of CE(ŷ, f) + λ KL(σ(z_div) ‖ f)."""
        return consensus_with_diversity(logits, self.regularisation)
