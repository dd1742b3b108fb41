"""Train one run.

    python -m fedlogit train --spec FILE --out DIR --device cuda

Needs torch, numpy and a few light packages, but no Snakemake and no network. The data set must have
been prepared (`prepare`). Run the command again to resume.

A one-shot run can start from the output of other commands: trained clients, their logits and, for
methods that distil into the server's model, the targets. The result is the same to the bit:

    python -m fedlogit train --spec FILE --out DIR --clients DIR --logits FILE --targets FILE
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fedlogit import methods
from fedlogit.commands._options import checkpoint_option, own_device, read_spec, run_options
from fedlogit.commands._values import given_path
from fedlogit.errors import FedlogitError
from fedlogit.files import read_json
from fedlogit.runs import layout
from fedlogit.runs.checkpoint import remove_checkpoints
from fedlogit.runs.context import RunOptions
from fedlogit.runs.external_code import external_code
from fedlogit.runs.finishing import forget_outputs
from fedlogit.runs.integrity import check_finished
from fedlogit.runs.library_code import imported_code_version
from fedlogit.runs.provenance import differences
from fedlogit.runs.run import check_folder, run, run_lock
from fedlogit.runs.setup import open_data
from fedlogit.runs.stages import Precomputed, load_precomputed, why_in_one_piece
from fedlogit.spec import RunSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    run_options(parser)
    parser.add_argument("--out", type=given_path, required=True, help="folder of the run")
    checkpoint_option(parser)
    parser.add_argument(
        "--restart",
        action="store_true",
        help="delete checkpoints and start over",
    )
    parser.add_argument(
        "--clients", type=given_path, help="trained clients: the folder that train_clients wrote"
    )
    parser.add_argument(
        "--logits", type=given_path, help="their logits: logits.npz from export_logits"
    )
    parser.add_argument(
        "--targets", type=given_path, help="the targets: targets.npz from aggregate"
    )


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    spec = methods.resolve(read_spec(args.spec))
    _check_stages(args, spec)
    check_folder(spec, args.out)
    with run_lock(args.out) as missing:
        if not missing:
            if args.restart:
                raise FedlogitError(f"--restart: {args.out} is finished; remove it to train anew")
            check_finished(args.out, spec.digest())
            print(f"{args.out} is finished{_by_other_code(args.out, spec)}")
            return
        if args.restart:
            forget_outputs(args.out)
            remove_checkpoints(args.out)
        with own_device(args, spec) as device:
            done = _precomputed(args, spec)
            dataset, split = open_data(spec, args.data, args.split)
            options = RunOptions(
                device, args.workers, args.engine, args.checkpoint_seconds, not args.quiet
            )
            run(spec, methods.get(spec.method), dataset, split, args.out, options, done)
    result = read_json(args.out / layout.RESULT)
    accuracy = result["final"].get("accuracy")
    ended = f"{result['status']}: {result['message']}" if result["message"] else result["status"]
    reached = "" if accuracy is None else f", {spec.samples} accuracy {accuracy:.4f}"
    print(f"{args.out}: {spec.method.name} on {spec.dataset}, {ended}{reached}")


def _by_other_code(folder: Path, spec: RunSpec) -> str:
    """Return what a finished run was made by, if that is not the code of now."""
    made = read_json(folder / layout.RESULT)["provenance"]
    before = {"code_version": made.get("code_version"), "own_code": made.get("own_code", {})}
    now = {
        "code_version": imported_code_version(),
        "own_code": external_code(spec.model_dump(mode="json")),
    }
    found = differences(before, now)
    return f", by other code ({found}); remove it to train it anew" if found else ""


def _check_stages(args: argparse.Namespace, spec: RunSpec) -> None:
    """Refuse files of earlier stages that are incomplete, or of no use to this run."""
    given = [key for key in ("clients", "logits", "targets") if getattr(args, key)]
    if given and not (args.clients and args.logits):
        raise FedlogitError(f"--{given[0]}: give --clients and --logits together, or neither")
    if given and (reason := why_in_one_piece(spec)):
        options = " and ".join(f"--{key}" for key in given)
        raise FedlogitError(f"{reason} is not made in stages; leave out {options}")


def _precomputed(args: argparse.Namespace, spec: RunSpec) -> Precomputed | None:
    """Return what earlier stages left, if the options name it."""
    if not args.clients:
        return None
    return load_precomputed(spec, args.clients / layout.WEIGHTS, args.logits, args.targets)
