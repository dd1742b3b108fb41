"""Writes docs/second-versions.md from what `oracles.agreement` recorded (`make oracles`)."""

from __future__ import annotations

import json
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

__all__ = ["page", "row_of"]

INTRODUCTION = """\
# Second versions: every method implemented twice

Each method has a second, independent implementation in `tests/oracles`, written from the paper's
algorithm box without importing the library. It is plain PyTorch or NumPy, with loops where the
library has batches. Both versions get the same data, initial weights and minibatches. After every
round, the quantities listed above a section's table, and those that a row adds, must agree: no
entry may differ by more than the row's tolerance. [Deviations](deviations.md) lists what we chose
where a paper leaves something open. If an author's public code decides a choice, the second version
says so.

`make oracles` runs all comparisons and writes this page. The differences were measured on one
machine. Unless the brackets after a call say otherwise, a comparison uses digits (scikit-learn),
four clients and an MLP.
"""
HEADER = (
    "| call | also compared | rounds x seeds | tolerance | largest difference |\n"
    "|---|---|---|---|---|"
)


def row_of(text: str) -> str:
    """Return how the row of a comparison begins, from its name."""
    return f"| `{text}` |"


def page(records: list[dict[str, Any]]) -> str:
    """Return the page of all comparisons, a section for each method.

    Args:
        records: What was recorded; of a comparison that was made twice the last one counts.
    """
    last = {(record["method"], record["text"]): record for record in records}
    found = sorted(last.values(), key=lambda record: (record["method"].lower(), record["file"]))
    sections = [
        _section(method, file, list(group))
        for (method, file), group in groupby(found, lambda r: (r["method"], r["file"]))
    ]
    cases = sum(record["rounds"] * len(record["seeds"]) for record in found)
    methods = len({record["method"] for record in found})
    total = f"{methods} methods and partitions, {len(found)} comparisons, {cases:,} rounds.\n"
    return "\n".join([INTRODUCTION, total, *sections])


def _section(method: str, file: str, records: list[dict[str, Any]]) -> str:
    link = f"[{file}](../tests/oracles/{file})"
    compared = [{*map(_quantity, record["largest"])} for record in records]
    shared = set.intersection(*compared)
    rows = "\n".join(
        _row(record, own - shared) for record, own in zip(records, compared, strict=True)
    )
    source = records[0]["source"]
    lines = [f"## {method}", f"{link}: {source}", f"Compared: {_listed(shared)}."]
    return "\n\n".join([*lines, f"{HEADER}\n{rows}\n"])


def _row(record: dict[str, Any], also: set[str]) -> str:
    cases = f"{record['rounds']} x {len(record['seeds'])}"
    largest = max(record["largest"].values())
    cells = [_listed(also), cases, f"{record['tolerance']:g}", f"{largest:.0e}" if largest else "0"]
    return f"{row_of(record['text'])} {' | '.join(cells)} |"


def _listed(quantities: set[str]) -> str:
    return ", ".join(sorted(quantities)) or "–"


def _quantity(name: str) -> str:
    """Return what a compared quantity is, all of a kind under one word."""
    if name.startswith("bytes_"):
        return "bytes"
    if name.startswith(("accuracy", "balanced_accuracy", "loss_test")):
        return "test scores"
    own = name.rpartition("/")[2].replace("_", " ")
    plain = {"server": "server's weights", "clients": "clients' weights"}
    plain |= {"weights": "aggregation weights"}
    return re.sub(r" \d+$", "", plain.get(own, own))  # the number of an iteration


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text().splitlines()
    Path(sys.argv[2]).write_text(page([json.loads(line) for line in lines]))
