"""Measures growth: python -m benchmarks.growth [--out FOLDER]. Takes some minutes.

Seconds and memory of a round against clients, samples, classes, public samples, parameters and
workers, one of them at a time, with slopes on logarithmic axes; and how long it takes to plan.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from benchmarks.implementations import HERE
from benchmarks.rows import machine
from fedlogit.cli import run_main
from fedlogit.files import write_atomic
from fedlogit.results.style import PALETTE, header, new_figure, save_figure

Point = dict[str, float | str]
BASE = {
    "clients": 10, "samples": 100, "classes": 10, "public": 1000, "width": 64, "workers": 1,
}  # fmt: skip
GROWING: dict[str, Sequence[int]] = {
    "clients": (5, 15, 50, 150, 500, 1000),
    "samples": (100, 300, 1000, 3000, 10_000),
    "classes": (10, 30, 100, 300, 1000),
    "public": (500, 1500, 5000, 15_000, 50_000),
    "width": (68, 280, 962, 3124),  # 10^4 … 10^7 parameters
    "workers": tuple(2**i for i in range((os.cpu_count() or 1).bit_length())),
}
TITLES = {"samples": "samples of a client", "public": "public samples", "width": "parameters"}
MEASURES = {"seconds": "Time of a round [s]", "memory_mib": "Peak memory [MiB]"}
_MEASURED = (
    "A process for each point, measured once: the faster of two rounds after the first, and the"
    " peak of memory; no spread"
)
_SLOPE = (
    "Slope: of the last three points, on logarithmic axes, of memory without that of the first"
    " point; 1 is linear growth"
)
_TICKS = 9  # on an axis of less than a power of ten
REPOSITORY = HERE.parent
ALL_PAPERS = "papers=[who_to_trust,celm,tally_train,fedol,comparison]"
COMMANDS = {
    "plan all papers at paper scale": ("scale=paper", ALL_PAPERS),
    "plan what finished runs cover": ("scale=paper", ALL_PAPERS, "frozen=true", "partial=true"),
}


def points(axis: str, values: Sequence[int]) -> list[Point]:
    """Measure along an axis, a process for each point."""
    found: list[Point] = []
    for value in values:
        sizes = json.dumps(BASE | {axis: value})
        command = [sys.executable, "-m", "benchmarks.growth_point", sizes]
        answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
        measured = json.loads(answer.stdout)
        size = measured["parameters"] if axis == "width" else value
        found.append({"axis": TITLES.get(axis, axis), "size": size, **measured})
        print(f"{axis} = {value}: {measured['seconds']:.3f} s", flush=True)
    return found


def slope(found: Sequence[Point], measure: str) -> float:
    """Return the slope of the last three points on logarithmic axes: 1 is linear.

    Of memory only what there is above the first point counts, since most of a small run's are the
    libraries. NaN with fewer than three points, or without growth.
    """
    values = np.array([float(point[measure]) for point in found])
    if measure == "memory_mib":
        values = values - values[0]
    if len(found) < 3 or (values[-3:] <= 0).any():
        return float("nan")
    sizes = np.log([float(point["size"]) for point in found[-3:]])
    return round(float(np.polyfit(sizes, np.log(values[-3:]), 1)[0]), 3) + 0.0  # no -0


def _written(slope: float) -> str:
    return "–" if math.isnan(slope) else f"{slope:.2f}"


def draw(table: Sequence[Point], stem: Path, where: str) -> None:
    """Draw a column for each axis: seconds above, memory below, with their slopes.

    Args:
        table: All points.
        stem: Where to, without suffix.
        where: The machine, as from `benchmarks.rows.machine`.
    """
    axes_names = list(dict.fromkeys(str(point["axis"]) for point in table))
    figure, axes = new_figure(len(MEASURES), len(axes_names), panel=(2.6, 2.4), share_y="row")
    for column, name in enumerate(axes_names):
        found = [point for point in table if point["axis"] == name]
        for panel, (key, title) in zip(axes[:, column], MEASURES.items(), strict=True):
            panel.semilogx([p["size"] for p in found], [p[key] for p in found], "o-",
                           color=PALETTE["blue"], ms=4)  # fmt: skip
            _write_ticks(panel.xaxis)
            if key == "seconds":
                panel.set_yscale("log")
                _write_ticks(panel.yaxis)
            else:
                panel.yaxis.set_major_formatter("{x:,.0f}")
            written = _written(slope(found, key)).replace("-", "\N{MINUS SIGN}")
            panel.set_title(f"{key.partition('_')[0]}: slope {written}")
            if not column:
                panel.set_ylabel(title)
        axes[-1, column].set_xlabel(name.capitalize())
    subtitle = f"On {where}. {_MEASURED}. {_SLOPE}"
    header(figure, "Time and memory of a round as one size grows", subtitle)
    save_figure(figure, stem)


def _write_ticks(axis: Axis) -> None:
    """Write powers of ten on a logarithmic axis, and more where they would be one or none."""
    low, high = axis.get_view_interval()
    subs = (1.0,) if high > 10 * low else tuple(map(float, range(1, 10)))
    axis.set_major_locator(LogLocator(subs=subs, numticks=_TICKS))
    axis.set_major_formatter(
        StrMethodFormatter("{x:,g}") if high < 1e4 else axis.get_major_formatter()
    )
    axis.set_minor_locator(NullLocator())


def planning() -> list[Point]:
    """Time Snakemake's dry runs of this folder, which has finished runs or not."""
    found: list[Point] = []
    for name, settings in COMMANDS.items():
        target = "covered" if "frozen=true" in settings else "all"
        command = ["snakemake", "-n", "--quiet", "all", "--cores", "1", "--config", *settings]
        begin = time.perf_counter()
        done = subprocess.run(
            [*command, "--", target], capture_output=True, text=True, cwd=REPOSITORY
        )
        seconds = time.perf_counter() - begin
        if done.returncode:
            print(f"{name}: failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            continue
        found.append({"axis": name, "size": "", "seconds": seconds})
        print(f"{name}: {seconds:.1f} s", flush=True)
    return found


def write(table: Sequence[Point], commands: Sequence[Point], folder: Path, workers: int) -> None:
    """Write `growth.csv` and `growth.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = list(table[0])
    rows = [*table, *commands]
    with write_atomic(folder / "growth.csv") as part, part.open("w", newline="") as file:
        writer = csv.DictWriter(file, keys, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: _rounded(v) for k, v in row.items()} for row in rows)
    with write_atomic(folder / "growth.md") as part:
        part.write_text("\n".join(_markdown(table, commands, workers)) + "\n")


def _markdown(table: Sequence[Point], commands: Sequence[Point], workers: int) -> list[str]:
    start = min(float(point["seconds_to_first_step"]) for point in table)
    lines = [
        f"On {machine(workers)}. {_MEASURED}. {_SLOPE}.", "",
        "| grows | from | to | seconds per round | slope | memory, MiB | slope |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in dict.fromkeys(str(point["axis"]) for point in table):
        found = [point for point in table if point["axis"] == name]
        a, b = found[0], found[-1]
        slopes = [_written(slope(found, measure)) for measure in MEASURES]
        lines.append(
            f"| {name} | {a['size']:,.0f} | {b['size']:,.0f} "
            f"| {a['seconds']:.3f} – {b['seconds']:.3f} | {slopes[0]} "
            f"| {a['memory_mib']:,.0f} – {b['memory_mib']:,.0f} | {slopes[1]} |"
        )
    lines += ["", "| command | seconds |", "|---|---|",
              f"| start a run, until its first step | {start:.1f} |"]  # fmt: skip
    return lines + [f"| {row['axis']} | {row['seconds']:.1f} |" for row in commands]


def _rounded(value: float | str) -> float | str:
    return round(value, 4) if isinstance(value, float) else value


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args(argv)
    table = [point for axis, values in GROWING.items() for point in points(axis, values)]
    write(table, planning(), args.out, 1)
    draw(table, args.out / "growth", machine(1))
    print((args.out / "growth.md").read_text())


if __name__ == "__main__":
    run_main(main)
