"""Bits that flip and files that end early."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np


def damages(path: Path, count: int) -> Iterator[str]:
    """Damage a file in `count` ways, one after another: half of them flips, half truncations."""
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for i in range(count):
        at = int(random.integers(len(whole)))
        if i % 2:
            path.write_bytes(whole[:at])
        else:
            damaged = bytearray(whole)
            damaged[at] ^= 1 << int(random.integers(8))
            path.write_bytes(damaged)
        yield f"{'truncated' if i % 2 else 'flipped'} at {at} of {len(whole)}"
    path.write_bytes(whole)
