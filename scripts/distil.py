#!/usr/bin/env python3
"""Train the server's model of a one-shot run on its clients' answers, and write the run's folder.

    python scripts/distil.py --spec FILE --weights FILE --logits FILE [--targets FILE] --out DIR

The outcome has the same bits as scripts/train.py's, which does all stages in one piece.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _options import own_device, read_spec, run_options

from fedlogit import methods
from fedlogit.cli import run_main
from fedlogit.errors import FedlogitError
from fedlogit.runs.run import Options, check_folder, run, run_lock
from fedlogit.runs.setup import open_data
from fedlogit.runs.stages import in_stages, load_precomputed


def main(argv: Sequence[str]) -> None:
    """Run the command line."""
    parser = run_options(__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="of scripts/train_clients.py")
    parser.add_argument("--logits", type=Path, required=True, help="of scripts/export_logits.py")
    parser.add_argument("--targets", type=Path, help="of scripts/aggregate.py")
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.add_argument("--checkpoint-seconds", type=float, default=60, help="0: after every round")
    args = parser.parse_args(argv)
    spec = methods.complete(read_spec(args.spec))
    method = methods.get(spec.method)
    if not in_stages(spec, method):
        raise FedlogitError(
            f"method {method.name} with rounds = {spec.rounds} cannot be made in stages; use"
            " scripts/train.py"
        )
    check_folder(spec, args.out)
    with run_lock(args.out) as missing:
        if not missing:
            print(f"{args.out} is finished")
            return
        with own_device(args, spec) as device:
            given = load_precomputed(spec, args.weights, args.logits, args.targets)
            dataset, split = open_data(spec, args.data, args.split)
            options = Options(
                device, args.workers, args.engine, args.checkpoint_seconds, not args.quiet
            )
            run(spec, method, dataset, split, args.out, options, given)


if __name__ == "__main__":
    run_main(main)
