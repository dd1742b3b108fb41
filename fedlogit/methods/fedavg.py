"""FedAvg: the average of the clients' models (McMahan et al. 2017; CELM §3.1, §5)."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedlogit.federation import Federation
from fedlogit.methods.model_federation import ModelFederation

__all__ = ["FedAvg"]


class FedAvg(ModelFederation):
    """One local stage, then an average.

    Absent clients: the weights are those of the clients present, N of them or with Σn samples.

    Attributes:
        weighting: ``uniform`` is c_i = 1/N, which CELM §5 reports "so no client-reported metadata
            is used"; ``samples`` is the original c_i = n_i / Σn.
    """

    name: ClassVar[str] = "fedavg"
    supports_sequences: ClassVar[bool] = True
    fixed_messages: ClassVar[bool] = True

    weighting: Literal["uniform", "samples"] = "uniform"

    def contributions(self, fed: Federation) -> list[float]:
        """Return the fixed weights."""
        sizes = [c.samples if self.weighting == "samples" else 1 for c in fed.clients]
        return [size / sum(sizes) for size in sizes]
