"""Randomness with an address: an independent generator per (seed, purpose, ids).

Nothing here, and nothing that uses it, seeds a global generator. The address is hashed, so that
adding a consumer never shifts the numbers another one sees. CELM's partitions are the one
exception in the project: they need NumPy's legacy generator (see `fedlogit.partition`).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["derive", "rng", "torch_rng"]


def derive(seed: int, purpose: str, *ids: int) -> int:
    """Return a 63-bit seed for the address (seed, purpose, ids)."""
    text = "/".join([str(int(seed)), purpose, *(str(int(i)) for i in ids)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def rng(seed: int, purpose: str, *ids: int) -> np.random.Generator:
    """Return the NumPy generator of an address, e.g. ``rng(0, "participation", round)``."""
    return np.random.default_rng(derive(seed, purpose, *ids))


def torch_rng(seed: int, purpose: str, *ids: int) -> torch.Generator:
    """Return the PyTorch CPU generator of an address; draw on the CPU, then move."""
    import torch  # seconds that dividing data, which needs NumPy only, need not wait

    return torch.Generator().manual_seed(derive(seed, purpose, *ids))
