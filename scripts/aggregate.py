#!/usr/bin/env python3
"""Turn clients' logits into targets: a pure function of the file, without data or models.

    python scripts/aggregate.py --spec FILE --logits logits.npz --out targets.npz
    python scripts/aggregate.py --function my_package.my_module:median --logits … --out …

The spec names the method whose aggregator is meant; or name any importable function.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _options import read_spec

from fedlogit import methods
from fedlogit.aggregation.targets import checked
from fedlogit.cli import run_main
from fedlogit.component import ComponentRef
from fedlogit.errors import FedlogitError
from fedlogit.methods.one_shot import OneShot
from fedlogit.runs.stages import load_answers, save_targets


def main(argv: Sequence[str]) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--spec", type=Path, help="a run's spec, JSON; - reads it")
    which.add_argument("--function", help="package.module:function")
    parser.add_argument("--logits", type=Path, required=True, help="of scripts/export_logits.py")
    parser.add_argument("--out", type=Path, required=True, help="targets.npz")
    args = parser.parse_args(argv)
    call = ComponentRef(name="aggregator", params={"function": args.function})
    if args.spec:
        call = read_spec(args.spec).method
    method = methods.get(call)
    if not isinstance(method, OneShot):
        raise FedlogitError(f"method {method.name} does not make targets of clients' logits")
    answers = load_answers(args.logits)
    targets = checked(method.targets(answers.public), answers.public, method.name)
    made_by = ComponentRef(name=call.name, params=method.params())
    save_targets(targets, answers, made_by, args.out)
    points, classes = targets.distributions.shape[0], targets.distributions.shape[-1]
    clients = len(answers.public)
    print(f"{args.out}: targets of {clients} clients on {points} samples, {classes} classes")


if __name__ == "__main__":
    run_main(main)
