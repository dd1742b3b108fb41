"""Specs in files, and calls of train_many on them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from fedlogit.files import read_json, write_json
from fedlogit.runs.paths import run_dir
from fedlogit.spec import RunSpec
from support.calls import script
from support.outcomes import untimed_rows
from support.small import small_spec

QUIET = ("--device", "cpu", "--quiet", "--checkpoint-seconds", "0")


def specs_of(folder: Path, *changes: dict[str, Any]) -> list[RunSpec]:
    """Write specs of a second's work, a file each; return them."""
    specs = [small_spec(**change) for change in changes]
    for spec in specs:
        write_json(folder / f"{run_dir(spec)}.json", spec.model_dump(mode="json"))
    return specs


def train_many(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Train the specs of ``<folder>/specs`` into ``<folder>/results``."""
    places = ("--data", str(folder), "--results", str(folder / "results"))
    return script("train_many", str(folder / "specs"), *places, *QUIET, *options)


def folder_of(folder: Path, spec: RunSpec) -> Path:
    """Return a run's folder below ``<folder>/results``."""
    return folder / "results/runs" / run_dir(spec)


def content(folder: Path) -> dict[str, Any]:
    """Return all that a run left but what no two trainings share: times, and where they were."""
    result = read_json(folder / "result.json")
    exports = (path for path in folder.glob("exports/*") if path.name[0] != ".")
    return {
        "files": sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()),
        "spec": (folder / "spec.json").read_bytes(),
        "rows": untimed_rows(folder),
        "exports": {path.name: path.read_bytes() for path in exports},
        "result": {k: v for k, v in result.items() if k in ("status", "final", "split", "bytes")},
        "facts": result["provenance"].keys(),
        "digests": {k: v for k, v in result["provenance"].items() if k.endswith("_digest")},
    }
