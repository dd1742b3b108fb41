#!/usr/bin/env python3
"""Write what trained clients answer on the public and the test split.

    python scripts/export_logits.py --spec FILE --weights FILE --out DIR

Writes logits.npz and, last, logits.json with its digest. The weights are those of
scripts/train_clients.py, or of a finished run that exported them (export: [weights]).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _options import own_device, read_spec, run_options

from fedlogit import methods
from fedlogit.cli import run_main
from fedlogit.runs.client_files import load_weights
from fedlogit.runs.jobs import Job
from fedlogit.runs.stages import export_logits


def main(argv: Sequence[str]) -> None:
    """Run the command line."""
    parser = run_options(__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="weights.safetensors")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    args = parser.parse_args(argv)
    spec = methods.complete(read_spec(args.spec))
    weights = load_weights(args.weights, spec)
    with (
        own_device(args, spec) as device,
        Job(spec, args.data, args.split, device, args.workers, not args.quiet, args.engine) as job,
    ):
        export_logits(job.federation, weights, args.out)


if __name__ == "__main__":
    run_main(main)
