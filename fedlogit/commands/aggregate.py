"""Compute distillation targets from clients' logits.

    python -m fedlogit aggregate --spec FILE --logits logits.npz --out targets.npz
    python -m fedlogit aggregate --function my_package.my_module:median --logits … --out …

Uses the aggregator of the spec's method, or any importable function.
"""

from __future__ import annotations

import argparse

from fedlogit import methods
from fedlogit.aggregation.targets import as_targets
from fedlogit.commands._options import read_spec
from fedlogit.commands._values import given_file, given_path
from fedlogit.component import ComponentRef
from fedlogit.errors import Diverged, FedlogitError
from fedlogit.methods import OneShot
from fedlogit.methods.aggregator import Aggregator
from fedlogit.runs.logit_files import load_logits
from fedlogit.runs.target_files import save_diverged_targets, save_targets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--spec", type=given_path, help="the run's spec (JSON); - reads standard input"
    )
    which.add_argument("--function", help="the aggregator, as package.module:function")
    parser.add_argument(
        "--logits", type=given_path, required=True, help="logits.npz from export_logits"
    )
    parser.add_argument("--out", type=given_file, required=True, help="targets.npz to write")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    call = ComponentRef(name="aggregator", params={"function": args.function})
    if args.spec:
        call = read_spec(args.spec).method
    method = methods.get(call)
    if not isinstance(method, OneShot):
        raise FedlogitError(f"method {method.name} does not make targets of clients' logits")
    try:
        answers = load_logits(args.logits)
    except Diverged as error:
        save_diverged_targets(str(error), args.out)
        print(f"{args.out}: the clients diverged: {error}")
        return
    who = method.function if isinstance(method, Aggregator) else method.name
    targets = as_targets(method.targets(answers.public), answers.public, who)
    made_by = ComponentRef(name=call.name, params=method.params())
    save_targets(targets, answers, made_by, args.out)
    points, classes = targets.distributions.shape[0], targets.distributions.shape[-1]
    clients = len(answers.public)
    print(f"{args.out}: targets of {clients} clients on {points} samples, {classes} classes")
