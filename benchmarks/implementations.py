"""What is measured: how each is started, or why it is not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.workloads import Workload

__all__ = ["Implementation", "implementations"]

HERE = Path(__file__).resolve().parent
# Name in tables, folder under peers/, further arguments.
PEERS = (
    ("FedJAX", "fedjax", ()),
    ("Flower, 1 CPU per client", "flower", ("1",)),
    ("Flower, 2 CPUs per client", "flower", ("2",)),
    ("pfl-research", "pfl", ()),
    ("FedLab", "fedlab", ()),
    ("fluke", "fluke", ()),
)


@dataclass(frozen=True)
class Implementation:
    """An implementation of the workloads, which a process runs.

    Attributes:
        name: What tables call it.
        kind: ``fedlogit``, ``plain``, ``peer`` or ``limit``.
        command: How to start it; empty if it cannot run.
        reason: Why it cannot.
    """

    name: str
    kind: str
    command: tuple[str, ...] = ()
    reason: str = ""


def implementations(
    workload: Workload,
    folder: Path,
    data: Path,
    workers: int,
    environments: Path | None,
    *,
    bf16: bool = False,
) -> list[Implementation]:
    """Return all that are measured, and what measures the machine's limit.

    Args:
        workload: What is measured.
        folder: Where it was exported to.
        data: Where prepared data sets are.
        workers: Threads of fedlogit.
        environments: Where peers' environments are; None leaves peers out.
        bf16: Whether our reference loop is also measured in bfloat16.
    """
    engines = (*workload.engines, "loop, bf16") if bf16 else workload.engines
    return [
        *_ours(engines, folder, data, workers),
        *_plain(workload, folder),
        *(_peers(workload, folder, environments) if environments else ()),
        Implementation("limit", "limit", (sys.executable, "-m", "benchmarks.limit")),
    ]


def _ours(engines: Sequence[str], folder: Path, data: Path, workers: int) -> list[Implementation]:
    def ours(entry: str) -> Implementation:
        engine, _, precision = entry.partition(", ")
        command = (
            sys.executable, "-m", "benchmarks.ours", str(folder), "--engine", engine,
            "--data", str(data), "--workers", str(workers), "--precision", precision or "f32",
        )  # fmt: skip
        return Implementation(f"fedlogit, {entry}", "fedlogit", command)

    if shutil.which("g++") or shutil.which("clang++"):
        return [ours(engine) for engine in engines]
    missing = Implementation("fedlogit, native", "fedlogit", reason="there is no C++ compiler")
    return [missing if engine == "native" else ours(engine) for engine in engines]


def _plain(workload: Workload, folder: Path) -> list[Implementation]:
    script = str(HERE / "plain.py")
    return [
        Implementation(f"plain PyTorch, {way}", "plain", (sys.executable, script, str(folder), way))
        for way in workload.ways
    ]


def _peers(workload: Workload, folder: Path, environments: Path) -> list[Implementation]:
    found = []
    for name, where, arguments in PEERS:
        python = environments / where / "bin" / "python"
        command: tuple[str, ...] = ()
        reason = "" if where in workload.peers else workload.reason
        if not reason and not python.exists():
            reason = f"not installed: there is no {python} (make bench-peers installs it)"
        if not reason:
            command = (str(python), str(HERE / "peers" / where / "run.py"), str(folder), *arguments)
        found.append(Implementation(name, "peer", command, reason))
    return found
