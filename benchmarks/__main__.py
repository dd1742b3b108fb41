"""Measures speed: python -m benchmarks [--peers FOLDER] [--only W1] [--repetitions 5]."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from benchmarks.export import export
from benchmarks.implementations import HERE, implementations
from benchmarks.repetitions import repeat
from benchmarks.rows import Row, machine, rows
from benchmarks.tables import draw, read, write
from benchmarks.workloads import WORKLOADS, chosen
from fedlogit.cli import run_main


def measure(name: str, args: argparse.Namespace, where: str) -> list[Row]:
    """Measure a workload and return its rows."""
    workload = WORKLOADS[name]
    with tempfile.TemporaryDirectory(prefix="fedlogit-bench-") as temporary:
        folder = Path(temporary)
        size = export(workload, args.data, args.repetitions + 1, folder)
        competing = implementations(
            workload, folder, args.data, args.workers, args.peers, bf16=args.bf16
        )
        measured = repeat(
            competing, args.repetitions, lambda line: print(f"{name}, {line}", flush=True)
        )
    return rows(name, measured, size, where)


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent / "data" / "prepared")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--repetitions", type=int, default=5, help="that count; one more does not")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peers", type=Path, help="where peers' environments are; else no peers")
    parser.add_argument("--bf16", action="store_true", help="our loop in bfloat16, too")
    parser.add_argument(
        "--only",
        default=",".join(WORKLOADS),
        help="W1,W8: the others keep their rows, which say what code on what machine made them",
    )
    args = parser.parse_args(argv)
    try:
        only = chosen(args.only)
    except ValueError as error:
        parser.error(f"--only: {error}")
    if args.peers:
        args.peers = args.peers.absolute()
    where, earlier = machine(args.workers), read(args.out / "speed.csv")
    table: list[Row] = []
    for name in WORKLOADS:
        if name in only:
            table += measure(name, args, where)
        else:
            table += [row for row in earlier if row["workload"] == name]
    write(table, args.out)
    draw(table, args.out / "ratios")
    print((args.out / "speed.md").read_text())


if __name__ == "__main__":
    run_main(main)
