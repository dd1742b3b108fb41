"""Measures engines on a GPU: python -m benchmarks.gpu [--out FOLDER]. Takes some minutes.

Every engine on every case by itself, then one case in several processes at a time. Needs what a run
needs, and no more: nothing is drawn.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.gpu_point import CASES
from fedlogit.cli import run_main
from fedlogit.files import write_atomic
from fedlogit.runs.setup import choose_device

HERE = Path(__file__).resolve().parent
ENGINES = ("loop", "graphed", "stacked")
SHARED, PROCESSES = "tf_cnn", (3, 6)  # several runs on one GPU
_READY = 20.0  # seconds until all processes have begun
Point = dict[str, str | float]
COLUMNS = ("case", "engine", "processes", "batches_per_second", "memory_mib", "device", "torch")


def points(engine: str, cases: Sequence[str]) -> list[Point]:
    """Measure cases one after another in a process of their own; those that fail have an `error`.

    A process that dies takes the cases after it along.
    """
    command = [sys.executable, "-m", "benchmarks.gpu_point", engine, *cases]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)
    print(done.stdout + done.stderr, end="", flush=True)
    return answered(engine, cases, done.stdout, done.returncode)


def answered(engine: str, cases: Sequence[str], output: str, code: int) -> list[Point]:
    """Return a point for each case, from the lines that a process printed and its exit code."""
    lines = [line for line in output.splitlines() if line.startswith('{"case"')]
    found = {point["case"]: point for point in map(json.loads, lines)}
    error = f"its process ended with exit code {code}"
    return [found.get(case, {"case": case, "engine": engine, "error": error}) for case in cases]


def together(engine: str, case: str, processes: int) -> Point:
    """Measure one case in several processes that begin at the same time."""
    begin = str(time.time() + _READY)
    command = [sys.executable, "-m", "benchmarks.gpu_point", engine, case, "--begin", begin]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
        for _ in range(processes)
    ]
    outputs = [one.communicate()[0] for one in running]
    return joined(
        [
            answered(engine, [case], output, one.returncode)[0]
            for one, output in zip(running, outputs, strict=True)
        ]
    )


def joined(found: Sequence[Point]) -> Point:
    """Return points of processes that shared a GPU as one: the sum of what they trained on.

    If one of them failed, its point stands for all.
    """
    for point in found:
        if "error" in point:
            return {**point, "processes": len(found)}
    total = sum(float(point["batches_per_second"]) for point in found)
    return {**found[0], "processes": len(found), "batches_per_second": total}


def write(found: Sequence[Point], folder: Path) -> None:
    """Write `engines.csv` and `engines.md`; the latter names what failed, too."""
    measured = [point for point in found if "error" not in point]
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomic(folder / "engines.csv") as part, part.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(measured)
    with write_atomic(folder / "engines.md") as part:
        failed = [point for point in found if "error" in point]
        part.write_text("\n".join([*_markdown(measured), *_failures(failed)]) + "\n")


def _markdown(found: Sequence[Point]) -> Iterator[str]:
    where = dict.fromkeys(f"{point['device']}, PyTorch {point['torch']}" for point in found)
    yield f"Minibatches of a client a second, on {'; '.join(where)}. Memory: its peak in a process."
    yield ""
    yield "| Model | Clients | Minibatch | Engine | Processes | Minibatches/s | × loop | MiB |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, case in CASES.items():
        of_case = [point for point in found if point["case"] == name]
        alone = {point["engine"]: point for point in of_case if point["processes"] == 1}
        for point in of_case:
            rate = float(point["batches_per_second"])
            loop = alone.get("loop")
            times = f"{rate / float(loop['batches_per_second']):.1f}" if loop else "–"
            yield (
                f"| {case.title} | {case.clients} | {case.batch} | `{point['engine']}`"
                f" | {point['processes']} | {rate:,.0f} | {times}"
                f" | {float(point['memory_mib']):,.0f} |"
            )


def _failures(failed: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each case that could not be measured, with the reason."""
    if failed:
        yield ""
        yield "Not measured:"
        yield ""
    for point in failed:
        processes = point.get("processes", 1)
        beside = f", {processes} processes" if processes != 1 else ""
        title = CASES[str(point["case"])].title
        yield f"- {title}, `{point['engine']}`{beside}: {point['error']}"


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "gpu")
    args = parser.parse_args(argv)
    choose_device("cuda")  # before a process for each engine finds that it is not there
    found = [point for engine in ENGINES for point in points(engine, list(CASES))]
    found += [together(engine, SHARED, n) for engine in ENGINES for n in PROCESSES]
    write(found, args.out)
    print((args.out / "engines.md").read_text())


if __name__ == "__main__":
    run_main(main)
