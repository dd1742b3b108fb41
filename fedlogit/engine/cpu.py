"""What Linux says of the CPU on which a run computes."""

from __future__ import annotations

from pathlib import Path

__all__ = ["cpu_field", "cpu_lines"]


def cpu_lines() -> list[str]:
    """Return the lines of ``/proc/cpuinfo``, which has some for each core; none elsewhere."""
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def cpu_field(name: str) -> str:
    """Return a field of the first core, such as its ``model name``; empty if there is none."""
    for line in cpu_lines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
