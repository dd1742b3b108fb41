"""Train the clients of a one-shot run, which several methods can share.

    python -m fedlogit train_clients --spec FILE --out DIR

Writes spec.json, weights.safetensors and then clients.json. The spec may be that of any one-shot
run; settings that concern only the server are ignored. Run the command again to resume. If the
clients diverge, the files say so, and so do the commands that read them.
"""

from __future__ import annotations

import argparse
import time

from fedlogit import methods
from fedlogit.commands._options import own_device, read_spec, run_context, run_options
from fedlogit.commands._values import given_path
from fedlogit.files import read_sealed, write_json, write_sealed
from fedlogit.runs import layout
from fedlogit.runs.finishing import hidden, make_outputs_once
from fedlogit.runs.hints import remake_hint
from fedlogit.runs.progress import clients_bar
from fedlogit.runs.run import check_folder, run_lock
from fedlogit.runs.stage_records import ClientsRecord, read_record
from fedlogit.runs.stages import clients_spec, remove_parts, train_clients


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    run_options(parser)
    parser.add_argument("--out", type=given_path, required=True, help="folder to write to")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    spec = clients_spec(methods.resolve(read_spec(args.spec)))
    check_folder(spec, args.out)
    with run_lock(args.out, layout.CLIENTS) as missing:
        if not missing:
            read_sealed(args.out / layout.CLIENTS, remake_hint(args.out / layout.CLIENTS))
            print(f"{args.out} is finished")
            return
        write_json(args.out / layout.SPEC, spec.model_dump(mode="json"))
        with own_device(args, spec) as device:
            start = time.perf_counter()
            context = run_context(args, spec, device)

            def make() -> None:
                with clients_bar(spec, not args.quiet) as bar, context.federation(bar) as fed:
                    made = train_clients(fed, args.out)
                weights, note = (args.out / name for name in layout.OUTPUTS_OF_CLIENTS)
                weights.replace(hidden(weights))
                seconds = time.perf_counter() - start
                write_sealed(hidden(note), context.provenance.record(seconds) | made)

            make_outputs_once(
                args.out,
                layout.OUTPUTS_OF_CLIENTS,
                context.provenance.decisive(),
                make=make,
                tidy=lambda: remove_parts(spec.clients, args.out),
            )
        record = read_record(ClientsRecord, args.out / layout.CLIENTS)
        diverged = record.loss_private is None  # the record of their weights says why
        ended = "diverged" if diverged else f"private loss {record.loss_private:.4f}"
        print(f"{args.out}: {spec.clients} clients, {ended}")
