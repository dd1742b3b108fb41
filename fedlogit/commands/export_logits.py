"""Write trained clients' logits on the public set and the test split.

    python -m fedlogit export_logits --spec FILE --weights FILE --out DIR

Writes logits.npz and then logits.json with its digest. The weights come from `train_clients`, or
from a finished run that exported them (export: [weights]). Logits of these weights that are there
are not computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit import methods
from fedlogit.commands._options import own_device, read_spec, run_context, run_options
from fedlogit.commands._values import given_path
from fedlogit.errors import Diverged
from fedlogit.runs import layout
from fedlogit.runs.client_files import load_weights, weights_digest
from fedlogit.runs.logit_files import logits_exported, logits_lock, save_diverged_logits
from fedlogit.runs.stage_records import ClientsRecord, read_record
from fedlogit.runs.stages import clients_spec, export_logits, in_stages
from fedlogit.spec import RunSpec


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
    with logits_lock(args.out):
        try:
            weights = load_weights(args.weights, spec, specs, exported=True)
        except Diverged as error:
            record = read_record(ClientsRecord, args.weights.with_name(layout.CLIENTS))
            _export_reason(spec, specs, str(error), record.weights_digest, args.out)
            return
        if logits_exported(args.out, specs, weights_digest(weights)):
            print(f"{args.out} is finished")
            return
        with own_device(args, spec) as device:
            context = run_context(args, spec, device)
            # Nothing to count: all clients predict together, batch after batch.
            with context.federation(lambda: None) as fed:
                diverged = export_logits(fed, weights, args.out)
        made = (
            f"the clients diverged: {diverged}" if diverged else f"logits of {spec.clients} clients"
        )
        print(f"{args.out}: {made}")


def _export_reason(
    spec: RunSpec, specs: set[str], reason: str, weights_digest: str, folder: Path
) -> None:
    """Write why the clients have no logits, unless it is there."""
    if not logits_exported(folder, specs, weights_digest):
        save_diverged_logits(spec, reason, weights_digest, folder)
    print(f"{folder}: the clients diverged: {reason}")
