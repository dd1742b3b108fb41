"""What training took, table by table: runs that are planned and finished, hours and memory.

`metrics.json` has a sum for each scale; a reader who wants one table needs its share of it, and how
many of its runs would still have to be trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedlogit.papers import Plan
from fedlogit.papers.schema import TEST_SCALE
from fedlogit.results.collect import distinct_values
from fedlogit.results.formatting import read_csv, write_csv
from fedlogit.results.provenance import recorded, training_seconds

__all__ = ["FILE", "read_training", "training_table", "write_training"]

FILE = "training.csv"
_PLACE = ("paper", "scale", "id")
_TEXTS = (*_PLACE, "devices")
_COUNTS = ("runs", "finished", "cpu_mb", "gpu_mb")
_HOURS = ("cpu_hours", "gpu_hours")
_FACTS = ("device", "wall_seconds", "clients_started", "clients_wall_seconds")


def write_training(plan: Plan, results: Path) -> Path:
    """Write ``training.csv`` into a folder, as from `training_table`; return its path."""
    return write_csv(results / FILE, training_table(plan))


def training_table(plan: Plan) -> pd.DataFrame:
    """Return a row for each table and figure of every scale but ``smoke``, and one for all.

    The last row has "all" as `paper`, `scale` and `id`. In it, a run that several tables share
    counts once.

    Columns are `paper`, `scale`, `id`, `runs` (planned), `finished` (of these), and of the finished
    ones `cpu_hours` and `gpu_hours`, `cpu_mb` and `gpu_mb`, the largest peak memory (that of the
    process, or what was allocated on the GPU), and `devices`. Hours are those of each run by the
    clock, however many threads it had, and whether or not it shared a GPU.

    Raises:
        DataError: if a result is damaged.
    """
    rows: list[dict[str, Any]] = []
    everything: dict[str, None] = {}
    for paper in plan.papers.values():
        for scale in paper.scales:
            for artefact in plan.unfiltered_of(paper.paper, scale) if scale != TEST_SCALE else ():
                place = {"paper": paper.paper, "scale": scale, "id": artefact.id}
                runs = plan.runs(artefact)
                everything |= dict.fromkeys(runs)
                rows.append(place | _costs_of_runs(plan, runs))
    rows.append(dict.fromkeys(_PLACE, "all") | _costs_of_runs(plan, list(everything)))
    return pd.DataFrame(rows)


def read_training(path: Path) -> pd.DataFrame:
    """Return what `write_training` wrote.

    Raises:
        DataError: if it is no such table.
    """
    types = dict.fromkeys(_TEXTS, str) | dict.fromkeys(_COUNTS, int) | dict.fromkeys(_HOURS, float)
    return read_csv(path, types, types)[[*types]].fillna({"devices": ""})


def _costs_of_runs(plan: Plan, runs: Sequence[str]) -> dict[str, Any]:
    """Return what the finished ones among some runs took, and how many there are."""
    facts = [recorded(plan.layout.run(run)) for run in runs if plan.finished(run)]
    columns = [*_FACTS, "device_type", "peak_memory_bytes"]
    finished = pd.DataFrame(facts, columns=columns)
    took: dict[str, Any] = {"runs": len(runs), "finished": len(finished)}
    for name, part in (
        ("cpu", finished[finished["device_type"] != "cuda"]),
        ("gpu", finished[finished["device_type"] == "cuda"]),
    ):
        took[f"{name}_hours"] = round(training_seconds(part) / 3600, 3)
        peak = part["peak_memory_bytes"].max()
        took[f"{name}_mb"] = 0 if math.isnan(peak) else math.ceil(peak / 1e6)
    return took | {"devices": distinct_values(finished["device"], ", ")}
