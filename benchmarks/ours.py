"""fedlogit as a contestant: ours.py FOLDER --engine ENGINE --data DATA --workers N."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.federations import federation
from benchmarks.peers.protocol import Turns
from fedlogit.cli import run_main


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, required=True)
    args = parser.parse_args(argv)
    turns = Turns()
    spec = json.loads((args.folder / "spec.json").read_text())
    fed, method = federation(spec, args.data, args.engine, args.workers)
    round_ = 0
    while turns.wait():
        round_ += 1
        fed.start_round(round_)
        method.round(fed, round_)
        turns.stop()
        turns.answer(float(fed.evaluate().per_client.mean()))


if __name__ == "__main__":
    run_main(main)
