"""Train the server's model of a one-shot run on its clients' answers, and write the run's folder.

    python -m fedlogit distil --spec FILE --weights FILE --logits FILE [--targets FILE] --out DIR

The outcome has the same bits as `train`'s, which does all stages in one piece.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit import methods
from fedlogit.commands._options import own_device, read_spec, run_options
from fedlogit.errors import FedlogitError
from fedlogit.federation.run import Options, check_folder, making, run
from fedlogit.federation.setup import open_data
from fedlogit.federation.stages import in_stages, load_given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    run_options(parser)
    parser.add_argument("--weights", type=Path, required=True, help="of `train_clients`")
    parser.add_argument("--logits", type=Path, required=True, help="of `export_logits`")
    parser.add_argument("--targets", type=Path, help="of `aggregate`")
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.add_argument("--checkpoint-seconds", type=float, default=60, help="0: after every round")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    spec = methods.complete(read_spec(args.spec))
    method = methods.get(spec.method)
    if not in_stages(spec, method):
        raise FedlogitError(
            f"method {method.name} with rounds = {spec.rounds} cannot be made in stages; use"
            " `train`"
        )
    check_folder(spec, args.out)
    with making(args.out) as missing:
        if not missing:
            print(f"{args.out} is finished")
            return
        with own_device(args, spec) as device:
            given = load_given(spec, args.weights, args.logits, args.targets)
            dataset, split = open_data(spec, args.data, args.split)
            options = Options(device, args.workers, args.checkpoint_seconds, not args.quiet)
            run(spec, method, dataset, split, args.out, options, given)
