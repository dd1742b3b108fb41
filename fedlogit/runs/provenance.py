"""Where a result comes from: code, data, machine and time."""

from __future__ import annotations

import datetime
import json
import os
import platform
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from fedlogit.data import Dataset
from fedlogit.errors import DataError, missing_package
from fedlogit.partition import Split
from fedlogit.runs.external_code import external_code
from fedlogit.runs.library_code import commit_facts, imported_code_version
from fedlogit.runs.machine import device_name
from fedlogit.spec import RunSpec

__all__ = [
    "Provenance",
    "check_facts",
    "differences",
    "imported_own_code",
]


# Code is what was imported, so that later commits and edits say nothing of it. A process that
# carries out many runs is forked from one that has come here.
_commit_facts = cache(commit_facts)
imported_code_version()
_own_digests: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()
# Facts that decide no bit of a result; and a device's model, which may: a job that Slurm puts back
# into its queue may get a node with another CPU, so a result names all models it was made on. What
# must be the same is the kind of device and the route of float32 matrix products.
_INCIDENTAL = (
    "commit", "uncommitted",
    "host_cores", "started", "command", "device", "earlier_devices",
)  # fmt: skip


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return which facts differ, as ``key old -> new``, shortened; "" if none does."""
    before, now = (json.loads(json.dumps(facts)) for facts in (before, now))
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return ", ".join(f"{k} {_short(before.get(k))} -> {_short(now.get(k))}" for k in keys)


def _short(fact: Any) -> str:
    text = "none" if fact is None else str(fact)
    text = text if text.isprintable() else ascii(text)  # of a run from elsewhere
    return text if len(text) <= 32 else f"{text[:12]}…"


def check_facts(
    path: Path, before: Mapping[str, Any] | None, now: Mapping[str, Any], hint: str
) -> None:
    """Refuse to go on with what was made by other facts.

    Args:
        path: What was made.
        before: The facts it carries; None if it was made before files carried them.
        now: Those of the job that would go on.
        hint: How to start anew.

    Raises:
        DataError: naming the facts that differ.
    """
    if before is None:
        differ = "it does not say by which code and of which data it was made"
    else:
        differ = differences(before, now)
    if differ:
        raise DataError(f"{path} cannot be resumed: {differ}; to start anew, {hint}")


class Provenance:
    """Facts about a run, taken when it starts and completed when it ends."""

    def __init__(
        self,
        spec: RunSpec,
        dataset: Dataset,
        split: Split,
        device: torch.device,
        f32_matmul: str,
        engine: str,
    ) -> None:
        """Take the facts that are known at the start.

        Args:
            spec: The run's resolved spec.
            dataset: Its data.
            split: Their partition.
            device: Where it computes.
            f32_matmul: From `configure_float32_matmul`.
            engine: Name of what runs the clients.
        """
        self._device = device
        plain = spec.model_dump(mode="json")
        self._start: dict[str, Any] = {
            "spec_digest": spec.digest(),
            "code_version": imported_code_version(),
            **_commit_facts(),
            **({"own_code": own} if (own := imported_own_code(plain)) else {}),
            "dataset_digest": dataset.digest,
            **({"normalised_by": _normalisation(dataset)} if dataset.mean else {}),
            "dataset_note": dataset.note,
            **({"tokenizer_digest": dataset.tokenizer} if dataset.tokenizer else {}),
            **({"probes_digest": dataset.probes_digest} if dataset.probes_digest else {}),
            "split_digest": split.digest,
            "split_notes": list(split.notes),
            "device": device_name(device),
            "device_type": device.type,
            "engine": engine,
            "precision": spec.precision,
            "f32_matmul": f32_matmul,
            "torch": torch.__version__,
            "numpy": np.__version__,
            **_versions(spec),
            "python": platform.python_version(),
            "host_cores": os.cpu_count(),
            "started": _now(),
            # Relative to where it ran: a path of one machine tells others nothing.
            "command": " ".join(["python", *sys.argv]).replace(f"{Path.cwd()}{os.sep}", ""),
        }

    @property
    def device(self) -> str:
        """The model of the device."""
        return str(self._start["device"])

    def add(self, facts: dict[str, Any]) -> None:
        """Add facts, such as where clients come from that were trained before."""
        self._start |= facts

    def decisive(self) -> dict[str, Any]:
        """Return the facts that decide every bit of a result on one model of a device."""
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


def imported_own_code(spec: Any) -> dict[str, str]:
    """Return `external_code` of a spec; of a module that an earlier run imported, as it was then.

    Args:
        spec: As plain data, complete or not.
    """
    found = external_code(spec)
    imported = {name: sys.modules.get(name) for name in found}
    return found | {
        name: _own_digests.setdefault(module, found[name])
        for name, module in imported.items()
        if module is not None
    }


def _normalisation(dataset: Dataset) -> dict[str, list[float]]:
    """Return what images are normalised by: it is in the card, neither in the spec nor the data."""
    return {"mean": list(dataset.mean), "std": list(dataset.std)}


def _versions(spec: RunSpec) -> dict[str, str]:
    """Return those of further libraries that decide bits.

    scikit-learn fits forests, boosting and mixtures, networkx draws graphs of peers, zuko has
    flows. The last two are named where they are there; a run that only counts bytes does without.

    Raises:
        FedlogitError: if there is no scikit-learn, which the library depends on.
    """
    try:
        found = {"scikit_learn": version("scikit-learn")}
    except PackageNotFoundError as error:
        raise missing_package(error, "a run", "make environment") from None
    optional = []
    if spec.method.params.get("topology") == "regular":
        optional.append("networkx")
    if spec.method.params.get("fit") == "flow":
        optional.append("zuko")
    for library in optional:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
