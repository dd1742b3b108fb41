"""Local: every client alone, the lower bound of every table."""

from __future__ import annotations

from typing import ClassVar

from fedlogit.federation import Federation
from fedlogit.methods.base import Method

__all__ = ["Local"]


class Local(Method):
    """Private training and nothing else."""

    one_shot: ClassVar[bool] = True
    sequences: ClassVar[bool] = True

    def round(self, fed: Federation, r: int) -> None:
        """Train."""
        fed.train_private()
