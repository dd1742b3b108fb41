"""What the machine is on which a run computes."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

__all__ = ["cpu_field", "device_name"]


def device_name(device: torch.device) -> str:
    """Return the model of a GPU or CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = cpu_field("model name")
    return f"CPU {name or platform.machine()}"


def cpu_field(name: str) -> str:
    """Return what Linux says of the CPU, such as its ``model name``; empty if it does not."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else []:
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
