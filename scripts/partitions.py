"""Write results/partitions.csv: every partition of data that a published run was trained on.

A row has the partition's folder below results/partitions, the digest of its indices, how many
published runs have it, and its settings as JSON, from which `python -m fedlogit partition --spec`
makes it again, with the same digest.

python scripts/partitions.py; with --check it only compares.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fedlogit.cli import run_main
from fedlogit.errors import DataError
from fedlogit.runs import layout
from fedlogit.runs.paths import split_dir
from fedlogit.spec import RunSpec
from scripts._generated import checking_parser, write_or_check
from scripts._published import published_records

_COLUMNS = ("partition", "digest", "runs", "settings")


@dataclass(frozen=True, order=True)
class Published:
    """A partition: its folder, the digest of its indices, and its settings as JSON."""

    folder: str
    digest: str
    settings: str


def main(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    parser = checking_parser(__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project's checkout")
    args = parser.parse_args(argv)
    path = args.root / "results" / "partitions.csv"
    text = table(published_records(args.root, layout.SPEC, layout.RESULT))
    why = "is not what published runs say; run make partitions"
    return write_or_check({path: text}, why, check=args.check)


def table(records: Iterable[Sequence[Any]]) -> str:
    """Return the file: a row per partition, in the order of their folders.

    Args:
        records: The spec and the result of each published run.

    Raises:
        DataError: if runs on one partition have different indices.
    """
    runs = Counter(_published(spec, result) for spec, result in records)
    digests: dict[str, str] = {}
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for found, count in sorted(runs.items()):
        if digests.setdefault(found.folder, found.digest) != found.digest:
            raise DataError(f"published runs on {found.folder} have different indices")
        writer.writerow([found.folder, found.digest, count, found.settings])
    return lines.getvalue()


def _published(given: Any, result: Any) -> Published:
    spec = RunSpec.read(given, "a published run's spec")
    settings = json.dumps(spec.split_key(), sort_keys=True)
    return Published(split_dir(spec).as_posix(), result["provenance"]["split_digest"], settings)


if __name__ == "__main__":
    run_main(main)
