"""A method for tests on a cluster: Average, but slow enough to be interrupted, and hungry."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from fedlogit.federation import Federation
from fedlogit.methods.average import Average

_HELD: list[np.ndarray] = []


class Patient(Average):
    """Average with a pause after each round; same bits whatever `kind` and `seconds`.

    Pauses end where the test has made a file ``hurry-<kind>`` in the folder of the workflow.
    """

    kind: str = ""
    seconds: float = 5.0
    megabytes: int = 0  # taken in round 5, and kept

    def round(self, fed: Federation, r: int) -> None:
        """Do Average's round, take memory, wait."""
        super().round(fed, r)
        if r == 5 and self.megabytes:
            _HELD.append(np.ones(self.megabytes << 17))
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and not Path(f"hurry-{self.kind}").exists():
            time.sleep(0.1)
