"""Train one run.

    python -m fedlogit train --spec FILE --out DIR --device cuda

Needs only torch, numpy and the library's few light dependencies; no Snakemake and no network. The
data set must have been prepared (`prepare`). Run again to resume.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit import methods
from fedlogit.commands._options import own_device, read_spec, run_options
from fedlogit.federation.checkpoint import remove_checkpoints
from fedlogit.federation.run import Options, check_folder, making, run
from fedlogit.federation.setup import open_data
from fedlogit.files import read_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    run_options(parser)
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.add_argument("--checkpoint-seconds", type=float, default=60, help="0: after every round")
    parser.add_argument("--restart", action="store_true", help="forget a checkpoint; start anew")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    spec = methods.complete(read_spec(args.spec))
    check_folder(spec, args.out)
    with making(args.out) as missing:
        if not missing:
            print(f"{args.out} is finished")
            return
        if args.restart:
            remove_checkpoints(args.out)
        with own_device(args, spec) as device:
            dataset, split = open_data(spec, args.data, args.split)
            options = Options(device, args.workers, args.checkpoint_seconds, not args.quiet)
            run(spec, methods.get(spec.method), dataset, split, args.out, options)
    result = read_json(args.out / "result.json")
    accuracy = result["final"].get("accuracy")
    reached = "" if accuracy is None else f", test accuracy {accuracy:.4f}"
    print(f"{args.out}: {spec.method.name} on {spec.dataset}, {result['status']}{reached}")
