#!/usr/bin/env python3
"""Train one run: python scripts/train.py --spec FILE --out DIR [--device cuda].

Needs only torch, numpy and the library's few light dependencies; no Snakemake and no network. The
data set must have been prepared (scripts/prepare.py). Run again to resume.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _options import own_device, read_spec, run_options

from fedlogit import methods
from fedlogit.cli import run_main
from fedlogit.files import read_json
from fedlogit.runs.checkpoint import remove_checkpoints
from fedlogit.runs.run import Options, check_folder, run, run_lock
from fedlogit.runs.setup import open_data


def main(argv: Sequence[str]) -> None:
    """Run the command line."""
    parser = run_options(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.add_argument("--checkpoint-seconds", type=float, default=60, help="0: after every round")
    parser.add_argument("--restart", action="store_true", help="forget a checkpoint; start anew")
    args = parser.parse_args(argv)
    spec = methods.complete(read_spec(args.spec))
    check_folder(spec, args.out)
    with run_lock(args.out) as missing:
        if not missing:
            print(f"{args.out} is finished")
            return
        if args.restart:
            remove_checkpoints(args.out)
        with own_device(args, spec) as device:
            dataset, split = open_data(spec, args.data, args.split)
            options = Options(
                device, args.workers, args.engine, args.checkpoint_seconds, not args.quiet
            )
            run(spec, methods.get(spec.method), dataset, split, args.out, options)
    result = read_json(args.out / "result.json")
    accuracy = result["final"].get("accuracy")
    reached = "" if accuracy is None else f", test accuracy {accuracy:.4f}"
    print(f"{args.out}: {spec.method.name} on {spec.dataset}, {result['status']}{reached}")


if __name__ == "__main__":
    run_main(main)
