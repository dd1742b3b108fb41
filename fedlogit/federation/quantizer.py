"""Predictions as they are sent with fewer bits, and as they are then read.

Uniform quantization is the deterministic one of textbooks (Gersho & Gray 1992, ch. 5), with a range
for each prediction; Sattler et al. 2022 (CFD) study it for federated distillation. A prediction is
the vector along the last axis: the logits or probabilities of a sample, or of a position of a text.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedlogit.quantization import Quantization

__all__ = ["Quantized", "quantize"]

_HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Quantized:
    """A message.

    Attributes:
        parts: What is sent, each with the bits that an element takes; None is its dtype's size.
        read: What the receiver makes of it, in the shape and dtype of what was to be sent.
    """

    parts: tuple[tuple[torch.Tensor, int | None], ...]
    read: torch.Tensor


def quantize(values: torch.Tensor, how: Quantization) -> Quantized:
    """Round predictions as a format says.

    Args:
        values: Predictions, (…, classes), all finite.
        how: ``float16`` and ``bfloat16`` round to the nearest number that they have; one that is
            too large becomes the largest. ``uniform`` rounds to the nearest of 2^bits levels,
            equally spaced from a prediction's smallest value to its largest, which are sent with it
            as two float32.
    """
    if how.format == "uniform":
        assert how.bits is not None
        return _uniform(values, how.bits)
    half = _HALF[how.format]
    largest = torch.finfo(half).max
    sent = values.clamp(-largest, largest).to(half)
    return Quantized(((sent, None),), sent.to(values.dtype))


def _uniform(values: torch.Tensor, bits: int) -> Quantized:
    dtype = values.dtype
    low, high = (edge.float() for edge in values.aminmax(dim=-1, keepdim=True))
    ends = torch.cat([low, high], dim=-1)
    if (high - low).isinf().any():  # finite values, but too far apart for float32
        values, low, high = (v.double() for v in (values, low, high))
    step = (high - low) / (2**bits - 1)
    # Where all values are equal there is one level, and no step to divide by.
    levels = ((values - low) / torch.where(step > 0, step, 1)).round().to(torch.uint8)
    return Quantized(((levels, bits), (ends, None)), (low + levels * step).to(dtype))
