"""Two stages of private training: without a stop, and with a checkpoint in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fedlogit.federation import Federation
from fedlogit.federation.checkpoint import load_checkpoint, save_checkpoint


def whole_and_resumed(build: Callable[[], Federation], folder: Path) -> tuple[Federation, ...]:
    """Return a federation that trained two rounds at once, and one resumed after the first."""
    whole, first, second = (build() for _ in range(3))
    for whole.round in (1, 2):
        whole.train_private()
    first.round = 1
    first.train_private()
    save_checkpoint(folder, first, [])
    load_checkpoint(folder, second)
    second.round = 2
    second.train_private()
    return whole, second
