"""From what was measured to a table's rows: medians, and ratios of neighbouring repetitions."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Sequence

import numpy as np
import torch

from benchmarks.limit import UNIT
from benchmarks.repetitions import Measurement
from fedlogit.runs.library_code import code_version
from fedlogit.runs.machine import cpu_field, device_name

__all__ = ["FASTEST", "Row", "machine", "ratio", "rows"]

Row = dict[str, object]
PLAIN = "plain PyTorch, tensors"  # the fastest of the plain loops
FASTEST = "the fastest peer"


def rows(
    name: str, measured: Sequence[Measurement], size: dict[str, float], where: str
) -> list[Row]:
    """Return a row for all but the limit, which their shares are of.

    Args:
        name: The workload's.
        measured: What each took.
        size: The samples and the operations of a round.
        where: The machine.
    """
    peers = [p for p in measured if p.implementation.kind == "peer" and p.seconds]
    fastest = min(peers, key=lambda p: statistics.median(p.seconds), default=None)
    plain = next((p for p in measured if p.implementation.name == PLAIN), None)
    limit = next((p for p in measured if p.implementation.kind == "limit"), None)
    return [
        {
            "workload": name,
            "implementation": one.implementation.name,
            **_seconds(one, size["samples"]),
            "times_as_fast_as_the_plain_loop": ratio(plain, one),
            "times_as_fast_as_the_fastest_peer": ratio(fastest, one),
            "share_of_limit": ratio(limit, one, size["operations"] / UNIT),
            "note": one.reason or (FASTEST if one is fastest else ""),
            "code": code_version(),
            "machine": where,
        }
        for one in measured
        if one.implementation.kind != "limit"
    ]


def ratio(baseline: Measurement | None, own: Measurement, factor: float = 1.0) -> float | str:
    """Return how many times as fast one is as a baseline; empty if one of them has no times.

    Each repetition's ratio is of neighbours in time; their median is what we quote.
    """
    if baseline is None or not baseline.seconds or not own.seconds:
        return ""
    pairs = zip(baseline.seconds, own.seconds, strict=True)
    return round(statistics.median(factor * a / b for a, b in pairs), 2)


def machine(workers: int) -> str:
    """Return what times depend on beside the code.

    A model's name can hide its generation, hence the family, the widest vectors that PyTorch found,
    and whether there is a matrix unit.
    """
    tiles = ", AMX" if "amx_bf16" in cpu_field("flags").split() else ""
    return (
        f"{device_name(torch.device('cpu'))}{_family()} "
        f"({torch.backends.cpu.get_cpu_capability()}{tiles}), "
        f"{os.cpu_count()} cores, {workers} worker{'s' * (workers != 1)}; "
        f"torch {torch.__version__}, numpy {np.__version__}"
    )


def _family() -> str:
    fields = {"family": cpu_field("cpu family"), "model": cpu_field("model")}  # x86-64's
    return "".join(f", {name} {value}" for name, value in fields.items() if value)


def _seconds(one: Measurement, samples: float) -> Row:
    columns = ("seconds_median", "seconds_min", "seconds_max", "n", "samples_per_second",
               "memory_mib", "seconds_to_first_round", "accuracy")  # fmt: skip
    if not one.seconds:
        return dict.fromkeys(columns, "")
    median = statistics.median(one.seconds)
    accuracy = "" if math.isnan(one.accuracy) else round(one.accuracy, 4)
    values = (round(median, 3), round(min(one.seconds), 3), round(max(one.seconds), 3),
              len(one.seconds), round(samples / median), one.memory >> 20,
              round(one.first, 1), accuracy)  # fmt: skip
    return dict(zip(columns, values, strict=True))
