"""What the machine is on which a run computes."""

from __future__ import annotations

import platform

import torch

from fedlogit.engine.cpu import cpu_field

__all__ = ["device_name"]


def device_name(device: torch.device) -> str:
    """Return the model of a GPU or CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = cpu_field("model name")
    return f"CPU {name or platform.machine()}"
