r"""Compute the test accuracy of an ensemble: an aggregator on models' logits.

    python -m fedlogit ensemble --function fedlogit.aggregation.average:average_probabilities \
        --logits logits.npz --out ensemble.json

The logits are those of `export_logits`; nothing is trained.
"""

from __future__ import annotations

import argparse

from fedlogit.aggregation.custom import load_function
from fedlogit.aggregation.targets import as_targets
from fedlogit.commands._values import given_file, given_path
from fedlogit.errors import DataError
from fedlogit.files import write_sealed
from fedlogit.runs.logit_files import load_logits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--function", required=True, help="the aggregator, as package.module:function"
    )
    parser.add_argument(
        "--logits", type=given_path, required=True, help="logits.npz from export_logits"
    )
    parser.add_argument("--out", type=given_file, required=True, help="JSON file to write")


def main(args: argparse.Namespace) -> None:
    """Carry the command out."""
    function, answers = load_function(args.function), load_logits(args.logits)
    if not len(answers.test) or not len(answers.labels):
        raise DataError(f"{args.logits}: has no logits on the test split, or not its labels")
    # A copy, since a function that writes in place would change what it is compared with.
    given = function(answers.test.clone())
    together = as_targets(given, answers.test, args.function).distributions
    alone = answers.test.argmax(2) == answers.labels
    accuracy = float((together.argmax(1) == answers.labels).float().mean())
    record = {
        "function": args.function,
        "accuracy": accuracy,
        "client_accuracy": [float(x) for x in alone.float().mean(1)],
        "oracle_accuracy": float(alone.any(0).float().mean()),
        "clients": len(answers.test),
        "test_samples": len(answers.labels),
        "logits_digest": answers.digest,
    }
    write_sealed(args.out, record)
    print(f"{args.out}: accuracy {accuracy:.4f} of {len(answers.test)} models together")
