"""Images from storage to network, in bulk: layout, normalisation, crops and flips."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F

__all__ = ["crop_flip", "normalise", "to_nchw"]


def to_nchw(images: np.ndarray) -> torch.Tensor:
    """Return stored images (n, height, width, channels) as (n, channels, height, width)."""
    return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))


def normalise(images: torch.Tensor, mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
    """Return ``(images / 255 - mean) / std`` per channel as float32.

    Args:
        images: uint8 (n, channels, height, width).
        mean: One number a channel, of images scaled to [0, 1].
        std: The same.
    """
    scale = [1 / (255 * s) for s in std]
    shift = [-m / s for m, s in zip(mean, std, strict=True)]
    if len(scale) == 1:
        return images.to(torch.float32).mul_(scale[0]).add_(shift[0])
    view = (1, -1, 1, 1)
    a = torch.tensor(scale, device=images.device).view(view)
    b = torch.tensor(shift, device=images.device).view(view)
    return images.to(torch.float32).mul_(a).add_(b)


def crop_flip(images: torch.Tensor, generator: torch.Generator, padding: int = 4) -> torch.Tensor:
    """Return random crops of zero-padded images, half of them mirrored.

    The same distribution as torchvision's ``RandomCrop(size, padding)`` and
    ``RandomHorizontalFlip()`` one image at a time.

    Args:
        images: uint8 (n, channels, height, width).
        generator: A CPU generator; offsets and flips are drawn there and moved.
        padding: Pixels of zeros on each side before the crop.
    """
    n, _, height, width = images.shape
    shifts = torch.randint(0, 2 * padding + 1, (2, n), generator=generator).to(images.device)
    flips = (torch.rand(n, generator=generator) < 0.5).to(images.device)
    padded = F.pad(images, [padding] * 4)
    rows = shifts[0, :, None] + torch.arange(height, device=images.device)
    columns = torch.arange(width, device=images.device).expand(n, width)
    columns = torch.where(flips[:, None], width - 1 - columns, columns) + shifts[1, :, None]
    sample = torch.arange(n, device=images.device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=images.device)[:, None, None]
    return padded[sample, channel, rows[:, None, :, None], columns[:, None, None, :]]
