"""fedlogit as a contestant: ours.py FOLDER --engine ENGINE --data DATA --workers N."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.federations import federation
from benchmarks.peers.protocol import Turns
from fedlogit.cli import run_main
from fedlogit.federation import Federation
from fedlogit.methods import Method


def play(kind: str, fed: Federation, method: Method, turns: Turns) -> Callable[[int], float]:
    """Return what plays a turn, and then says the accuracy; NaN where there is none."""

    def round_of_method(round_: int) -> float:
        fed.start_round(round_)
        method.round(fed, round_)
        turns.stop()
        return float(fed.evaluate().per_client.mean())

    def test(_: int) -> float:
        found = float(fed.evaluate().per_client.mean())
        turns.stop()
        return found

    def maximise(round_: int) -> float:
        fed.start_round(round_)
        method._evidence(fed)  # type: ignore[attr-defined]  # CELM's, without its training
        turns.stop()
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
    turns = Turns()
    spec = json.loads((args.folder / "spec.json").read_text())
    kind = json.loads((args.folder / "settings.json").read_text())["kind"]
    spec["precision"] = args.precision
    fed, method = federation(spec, args.data, args.engine, args.workers)
    turn, round_ = play(kind, fed, method, turns), 0
    while turns.wait():
        round_ += 1
        turns.answer(turn(round_))


if __name__ == "__main__":
    run_main(main)
