"""Write trained clients' logits on the public set and the test split.

    python -m fedlogit export_logits --spec FILE --weights FILE --out DIR

Writes logits.npz and then logits.json with its digest. The weights come from `train_clients`, or
from a finished run that exported them (export: [weights]). Logits of these weights that are there
are not computed again.
"""

from __future__ import annotations

import argparse

import torch

from fedlogit import methods
from fedlogit.commands._options import own_device, read_spec, run_context, run_options
from fedlogit.commands._values import given_path
from fedlogit.errors import Diverged
from fedlogit.runs import layout
from fedlogit.runs.client_files import load_weights, weights_digest
from fedlogit.runs.folder_lock import folder_lock
from fedlogit.runs.logit_files import logits_exported, save_diverged_logits
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
    specs = {spec.digest()}
    if in_stages(spec):
        specs.add(clients_spec(spec).digest())
    with folder_lock(args.out):
        weights: list[dict[str, torch.Tensor]] = []
        try:
            weights, diverged = load_weights(args.weights, spec, specs, exported=True), ""
            digest = weights_digest(weights)
        except Diverged as error:
            record = read_record(ClientsRecord, args.weights.with_name(layout.CLIENTS))
            digest, diverged = record.weights_digest, str(error)
        if logits_exported(args.out, specs, digest):
            print(f"{args.out} is finished")
            return
        if diverged:
            save_diverged_logits(spec, diverged, digest, args.out)
        else:
            with own_device(args, spec) as device:
                context = run_context(args, spec, device)
                # Nothing to count: all clients predict together, batch after batch.
                with context.federation(lambda: None) as fed:
                    diverged = export_logits(fed, weights, args.out)
    ended = f"the clients diverged: {diverged}" if diverged else f"logits of {spec.clients} clients"
    print(f"{args.out}: {ended}")
