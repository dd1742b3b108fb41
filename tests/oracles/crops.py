"""Random crops and flips of private images (TallyTrain, appendix A), one image after another."""

from __future__ import annotations

import torch

__all__ = ["cropped"]

_PADDING, _SIDE = 4, 8


def cropped(x: torch.Tensor, noise: torch.Generator, black: float) -> torch.Tensor:
    """Return a minibatch of digits, shifted by up to four pixels, half of them mirrored."""
    corners = torch.randint(0, 2 * _PADDING + 1, (2, len(x)), generator=noise)
    mirrored = torch.rand(len(x), generator=noise) < 0.5
    made = torch.full((len(x), _SIDE, _SIDE), black)
    for i, image in enumerate(x.view(-1, _SIDE, _SIDE)):
        for row in range(_SIDE):
            for column in range(_SIDE):
                across = _SIDE - 1 - column if mirrored[i] else column
                a = row + int(corners[0, i]) - _PADDING
                b = across + int(corners[1, i]) - _PADDING
                if 0 <= a < _SIDE and 0 <= b < _SIDE:
                    made[i, row, column] = image[a, b]
    return made.flatten(1)
