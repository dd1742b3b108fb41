"""fedlogit as an implementation: ours.py FOLDER --engine ENGINE --data DATA --workers N."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.federations import federation
from benchmarks.peers.protocol import Repetitions
from fedlogit.cli import run_main
from fedlogit.federation import Federation
from fedlogit.methods import Method


def repetition_of(
    kind: str, fed: Federation, method: Method, repetitions: Repetitions
) -> Callable[[int], float]:
    """Return what carries out a repetition; it returns the accuracy, NaN if there is none."""

    def round_of_method(round_: int) -> float:
        fed.start_round(round_)
        method.round(fed, round_)
        repetitions.stop()
        return float(fed.evaluate().per_client.mean())

    def test(_: int) -> float:
        found = float(fed.evaluate().per_client.mean())
        repetitions.stop()
        return found

    def maximise(round_: int) -> float:
        fed.start_round(round_)
        method._evidence(fed)  # type: ignore[attr-defined]  # CELM's, without its training
        repetitions.stop()
        return math.nan

    return {"test": test, "maximise": maximise}.get(kind, round_of_method)


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--precision", default="f32")
    args = parser.parse_args(argv)
    repetitions = Repetitions()
    spec = json.loads((args.folder / "spec.json").read_text())
    kind = json.loads((args.folder / "settings.json").read_text())["kind"]
    spec["precision"] = args.precision
    fed, method = federation(spec, args.data, args.engine, args.workers)
    repetition, round_ = repetition_of(kind, fed, method, repetitions), 0
    while repetitions.wait():
        round_ += 1
        repetitions.answer(repetition(round_))


if __name__ == "__main__":
    run_main(main)
