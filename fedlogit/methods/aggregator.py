"""Any function from logits to targets, as a method: the bench for a new aggregator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import field_validator

from fedlogit.aggregation.custom import load_function
from fedlogit.aggregation.targets import Targets
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

    name: ClassVar[str] = "aggregator"

    function: str = "fedlogit.aggregation.average:average_probabilities"

    @field_validator("function")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        if not re.fullmatch(r"[\w.]+:\w+", value):
            raise ValueError("should be 'package.module:function'")
        return value

    def check(self, spec: RunSpec) -> None:
        """Import the function, as training will; whoever reads a run does not."""
        load_function(self.function)

    def targets(self, logits: torch.Tensor) -> torch.Tensor | Targets:
        """Return what the function returns."""
        return load_function(self.function)(logits)
