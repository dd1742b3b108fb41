"""A method for tests on a cluster: Average, but slow enough to be interrupted, and hungry."""

from __future__ import annotations

import time

import numpy as np

from fedlogit.federation import Federation
from fedlogit.methods.average import Average

_HELD: list[np.ndarray] = []


class Patient(Average):
    """Average with a pause after each round; same bits whatever `kind` and `seconds`."""

    kind: str = ""
    seconds: float = 0.5
    megabytes: int = 0  # taken in round 5, and kept

    def round(self, fed: Federation, r: int) -> None:
        """Do Average's round, take memory, wait."""
        super().round(fed, r)
        if r == 5 and self.megabytes:
            _HELD.append(np.ones(self.megabytes << 17))
        time.sleep(self.seconds)
