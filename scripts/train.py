#!/usr/bin/env python3
"""Train one run: python scripts/train.py --spec FILE --out DIR [--device cuda].

Needs only torch, numpy and the library's few light dependencies; no Snakemake and no network. The
data set must have been prepared (scripts/prepare.py). Run again to resume.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: spinning threads starve others
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit import data, methods
from fedlogit.cli import run_main
from fedlogit.errors import FedlogitError
from fedlogit.federation.run import Options, check_folder, is_finished, run
from fedlogit.federation.setup import choose_device, divide
from fedlogit.files import read_json
from fedlogit.partition import Split
from fedlogit.spec import RunSpec


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--spec", type=Path, required=True, help="the run's spec, JSON; - reads it")
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.add_argument(
        "--data", type=Path, default=Path("data/prepared"), help="prepared data sets"
    )
    parser.add_argument(
        "--split", type=Path, help="indices.npz of scripts/partition.py; else made anew"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:0, …")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="threads on a CPU")
    parser.add_argument("--checkpoint-seconds", type=float, default=60, help="0: after every round")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> None:
    """Run the command line."""
    args = parse(argv)
    if args.workers < 1:
        raise FedlogitError(f"workers = {args.workers}: give 1 or more")
    device = choose_device(args.device)
    source = Path("/dev/stdin") if str(args.spec) == "-" else args.spec
    spec = methods.complete(RunSpec.read(read_json(source), str(args.spec)))
    check_folder(spec, args.out)
    if is_finished(args.out):
        print(f"{args.out} is finished")
        return
    dataset = data.load(spec.dataset, args.data)
    split = Split.load(args.split) if args.split else divide(spec, dataset)
    options = Options(device, args.workers, args.checkpoint_seconds, progress=not args.quiet)
    run(spec, methods.get(spec.method), dataset, split, args.out, options)


if __name__ == "__main__":
    run_main(main)
