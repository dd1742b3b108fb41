"""Write trained clients' logits on the public set and the test split.

    python -m fedlogit export_logits --spec FILE --weights FILE --out DIR

Writes logits.npz and then logits.json with its digest. The weights come from `train_clients`, or
from a finished run that exported them (export: [weights]).
"""

from __future__ import annotations

import argparse

from fedlogit import methods
from fedlogit.commands._options import own_device, read_spec, run_context, run_options
from fedlogit.commands._values import given_path
from fedlogit.errors import Diverged
from fedlogit.runs import layout
from fedlogit.runs.client_files import load_weights
from fedlogit.runs.logit_files import save_diverged_logits
from fedlogit.runs.progress import clients_bar
from fedlogit.runs.stage_records import ClientsRecord, read_record
from fedlogit.runs.stages import clients_spec, export_logits, in_stages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    run_options(parser)
    parser.add_argument(
        "--weights", type=given_path, required=True, help="weights.safetensors of the clients"
    )
    parser.add_argument("--out", type=given_path, required=True, help="folder to write to")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    spec = methods.resolve(read_spec(args.spec))
    trained = {spec.digest()}
    if in_stages(spec):
        trained.add(clients_spec(spec).digest())
    try:
        weights = load_weights(args.weights, spec, trained, exported=True)
    except Diverged as error:
        path = args.weights.with_name(layout.CLIENTS)
        digest = read_record(ClientsRecord, path).weights_digest
        save_diverged_logits(spec, str(error), digest, args.out)
        print(f"{args.out}: the clients diverged: {error}")
        return
    with own_device(args, spec) as device:
        context = run_context(args, spec, device)
        with clients_bar(spec, not args.quiet) as bar, context.federation(bar) as fed:
            export_logits(fed, weights, args.out)
