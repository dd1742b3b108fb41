"""Names of the ways to run clients; what they are is in `fedlogit.engine`, which needs PyTorch."""

from __future__ import annotations

from typing import Literal

__all__ = ["CPU_ENGINES", "EngineName"]

EngineName = Literal["auto", "loop", "native", "unpadded", "graphed", "stacked"]

CPU_ENGINES = ("native", "unpadded")
"""Those that are for CPUs alone."""
