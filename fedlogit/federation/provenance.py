"""Where a result comes from: code, data, machine and time."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fedlogit
from fedlogit.data import Dataset
from fedlogit.partition import Split
from fedlogit.spec import RunSpec

__all__ = ["Provenance", "code_version"]


# What a run's numbers come from; not tables, figures and plans.
_SOURCES = ("aggregation", "data", "federation", "methods", "models", "partition")
# Facts that decide no bit of a result.
_INCIDENTAL = ("host_cores", "started", "command")


def code_version() -> str:
    """Return the package's version and a digest of the sources that a run executes."""
    root = Path(fedlogit.__file__).parent
    files = set(root.glob("*.py"))
    for folder in _SOURCES:
        files |= {path for path in (root / folder).rglob("*") if path.suffix in (".py", ".cpp")}
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return f"{fedlogit.__version__}+{digest.hexdigest()[:12]}"


class Provenance:
    """Facts about a run, taken when it starts and completed when it ends."""

    def __init__(
        self, spec: RunSpec, dataset: Dataset, split: Split, device: torch.device, products: str
    ) -> None:
        self._device = device
        self._start: dict[str, Any] = {
            "spec_digest": spec.digest(),
            "code_version": code_version(),
            "dataset_digest": dataset.digest,
            "dataset_note": dataset.note,
            **({"tokenizer_digest": dataset.tokenizer} if dataset.tokenizer else {}),
            **({"probes_digest": dataset.probes_digest} if dataset.probes_digest else {}),
            "split_digest": split.digest,
            "split_notes": list(split.notes),
            "device": device_name(device),
            "precision": spec.precision,
            "f32_matmul": products,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "host_cores": os.cpu_count(),
            "started": _now(),
            # Relative to where it ran: a path of one machine tells others nothing.
            "command": " ".join(["python", *sys.argv]).replace(f"{Path.cwd()}{os.sep}", ""),
        }

    def add(self, facts: dict[str, Any]) -> None:
        """Add facts, such as where clients come from that were trained before."""
        self._start |= facts

    def decisive(self) -> dict[str, Any]:
        """Return the facts that decide every bit of a result."""
        return {key: value for key, value in self._start.items() if key not in _INCIDENTAL}

    def record(self, seconds: float) -> dict[str, Any]:
        """Return all facts; `seconds` is the time that rounds took, resumed parts included."""
        return self._start | {
            "finished": _now(),
            "wall_seconds": seconds,
            "peak_memory_bytes": self._peak_memory(),
        }

    def _peak_memory(self) -> int:
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def device_name(device: torch.device) -> str:
    """Return the model of a GPU or CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    for line in _cpu_lines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return f"CPU {value.strip()}"
    return f"CPU {platform.machine()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
