"""Any function from logits to targets, as a method: the bench for a new aggregator."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import field_validator

from fedlogit.aggregation.custom import load_function
from fedlogit.aggregation.targets import Targets
from fedlogit.methods.one_shot import OneShot

__all__ = ["Aggregator"]


class Aggregator(OneShot):
    """One round with an aggregator from anywhere importable.

    Absent clients: the function gets the logits of those present.

    Attributes:
        function: ``package.module:function``, from logits (clients, points, classes) to
            distributions (points, classes). See docs/add-an-aggregator.md.
    """

    name: ClassVar[str] = "aggregator"

    function: str = "fedlogit.aggregation.average:average_probabilities"

    @field_validator("function")
    @classmethod
    def _is_there(cls, value: str) -> str:
        load_function(value)
        return value

    def targets(self, logits: torch.Tensor) -> torch.Tensor | Targets:
        """Return what the function returns."""
        return load_function(self.function)(logits)
