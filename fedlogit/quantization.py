"""How predictions are rounded when they are sent, so that messages are smaller."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fedlogit.frozen_config import FrozenConfig, refuse_unused

__all__ = ["Quantization"]


class Quantization(FrozenConfig):
    """The format in which logits and probabilities are sent, by clients and to them.

    Attributes:
        format: ``float16`` (IEEE half precision) or ``bfloat16``, 2 bytes a number; or ``uniform``,
            `bits` a number; see `fedlogit.federation.quantizer`.
        bits: Of a uniform format, which has 2^bits levels.
    """

    format: Literal["float16", "bfloat16", "uniform"]
    bits: Annotated[int, Field(ge=1, le=8)] | None = None

    @model_validator(mode="after")
    def _has_levels(self) -> Self:
        if self.format == "uniform" and self.bits is None:
            raise ValueError("format = 'uniform' needs bits, from 1 to 8")
        if self.format != "uniform":
            refuse_unused(self, ("bits",), f"has no effect with format = {self.format!r}")
        return self
