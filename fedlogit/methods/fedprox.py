"""FedProx: FedAvg with a proximal term (Li et al. 2020; FedOL §V-A)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedlogit.federation import Federation
from fedlogit.methods.fedavg import FedAvg

__all__ = ["FedProx"]


class FedProx(FedAvg):
    """Each client's loss gains μ/2 ‖w - w_g‖², with w_g the model that it received.

    Absent clients: as in FedAvg; w_g is the model received in the round, also by who comes late.

    Attributes:
        mu: μ. FedOL does not state it; 0.01 is ours. 0 is FedAvg.
        weighting: As FedAvg's; the original's is ``samples``.
    """

    name: ClassVar[str] = "fedprox"

    mu: Annotated[float, Field(ge=0)] = 0.01
    weighting: Literal["uniform", "samples"] = "samples"

    @property
    def uses_proximal_term(self) -> bool:
        """Whether μ is not 0."""
        return self.mu > 0

    def train(self, fed: Federation) -> None:
        """Train near the global model."""
        fed.train_private(proximal_mu=self.mu)
