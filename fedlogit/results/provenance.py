"""Where a table's or figure's runs come from: code, machine, time, command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.errors import DataError
from fedlogit.files import read_json
from fedlogit.papers.artefact import Artefact
from fedlogit.results.collect import sources
from fedlogit.results.formatting import sentence
from fedlogit.results.runs.run import read_run
from fedlogit.runs import layout
from fedlogit.runs.hints import rerun_hint

__all__ = ["caption", "provenance", "recorded", "training_seconds"]

_NEEDED = (
    *("code_version", "device", "engine", "precision", "dataset_note", "wall_seconds"),
    *("finished", "command", "torch", "peak_memory_bytes"),
)
"""What is taken of a run's provenance."""
_SHARED: dict[str, str | float] = {"clients_started": "", "clients_wall_seconds": 0.0}
# Version 0.1 recorded no kind of device, and ran on CPUs.
_OPTIONAL: dict[str, str | float] = {"device_type": "cpu", **_SHARED}
"""What is taken, too, and what stands for it where the run has none."""


def provenance(artefact: Artefact) -> pd.DataFrame:
    """Return where an artefact's runs come from, a row per run.

    Columns are `dir`, `digest`, `dataset`, `partition`, `method`, `seed`, `scale`, `rounds`,
    `diverged`, and the facts that the run recorded about code, machine, time and command; of a run
    in stages, also when its clients began, which others share, and how long they took.

    Raises:
        DataError: if a run is missing, incomplete, or not the one that was asked for.
    """
    rows = {}
    for ref in artefact.runs:
        run = read_run(ref.dir, ref.digest)
        rows[ref.digest] = {
            "dir": ref.dir.as_posix(),
            "cell": ref.cell,
            "digest": ref.digest,
            "dataset": run.spec.dataset,
            "partition": run.spec.partition.name,
            "method": run.spec.method.name,
            "seed": run.spec.seed,
            "scale": artefact.scale,
            "rounds": len(run.rounds),
            "diverged": run.diverged,
            **recorded(ref.dir),
            "code_version": run.result.provenance.whole_version,
        }
    return pd.DataFrame(list(rows.values()))


def recorded(folder: Path) -> dict[str, Any]:
    """Return what a finished run recorded about code, machine, time, memory and command.

    Raises:
        DataError: if its ``result.json`` cannot be read, or lacks one of these facts.
    """
    path = folder / layout.RESULT
    facts: dict[str, Any] = read_json(path).get("provenance", {})
    for key in _NEEDED:
        if key not in facts:
            raise DataError(f"{path}: key 'provenance.{key}' is missing; {rerun_hint(folder)}")
    return {key: facts[key] for key in _NEEDED} | {
        key: facts.get(key, other) for key, other in _OPTIONAL.items()
    }


def training_seconds(runs: pd.DataFrame) -> float:
    """Return how long training took in all, once for clients that several runs share.

    Args:
        runs: As from `provenance`, each once.
    """
    clients = runs[[*_SHARED]].drop_duplicates()
    return float(runs["wall_seconds"].sum() + clients["clients_wall_seconds"].sum())


def caption(artefact: Artefact) -> str:
    """Return what a figure shows, where it comes from, and why it lacks what cannot be.

    Where it comes from is scale, seeds, device and stand-ins.
    """
    source = "; ".join(filter(None, [sources(provenance(artefact)), artefact.not_run]))
    unable = f"{artefact.why_cannot}." if artefact.why_cannot else ""
    return " ".join(filter(None, [artefact.caption.strip(), f"{sentence(source)}.", unable]))
