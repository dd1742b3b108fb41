"""Any function from logits to targets, as a method: the bench for a new aggregator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fedlogit.aggregation import Targets
from fedlogit.aggregation.custom import load_function
from fedlogit.methods.one_shot import OneShot

if TYPE_CHECKING:
    from fedlogit.spec import RunSpec

__all__ = ["Aggregator"]


class Aggregator(OneShot):
    """One round with an aggregator from anywhere importable.

    Absent clients: the function gets the logits of those present.

    Attributes:
        function: ``package.module:function``, from logits (clients, points, classes) to
            distributions (points, classes). See docs/add-an-aggregator.md.
    """

    function: str = "fedlogit.aggregation.average:average_probabilities"

    @property
    def distils_soft_targets(self) -> bool:
        """Whatever the function returns is taken for that."""
        return True

    def check(self, spec: RunSpec) -> None:
        """Import the function, as training will; a run that is only read names it."""
        load_function(self.function)

    def targets(self, logits: torch.Tensor) -> torch.Tensor | Targets:
        """Return what the function returns."""
        return load_function(self.function)(logits)
