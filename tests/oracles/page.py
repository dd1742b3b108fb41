"""Writes docs/second-versions.md from what `oracles.agreement` recorded (`make oracles`)."""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

__all__ = ["page", "row_of"]

INTRODUCTION = """\
# Every method, a second time

Each method is written a second time in `tests/oracles`: plain PyTorch or NumPy, a loop where the
library has a batch, from the paper's algorithm box and without importing the library. Both versions
get the same data, first weights and minibatches; after every round they must agree in what the
table names, to the tolerance it states: the largest absolute difference of any entry. Where the
paper leaves a choice, [deviations.md](deviations.md) says which was made, and where an author's
public code decides, the second version says so.

`make oracles` makes all comparisons and writes this page. Differences are those of one machine.
A comparison is of digits (scikit-learn), four clients and a perceptron, unless it says otherwise
in brackets.
"""
HEADER = (
    "| call | compared | rounds x seeds | tolerance | largest difference |\n|---|---|---|---|---|"
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
    rows = "\n".join(map(_row, records))
    return f"## {method}\n\n{link}: {records[0]['source']}\n\n{HEADER}\n{rows}\n"


def _row(record: dict[str, Any]) -> str:
    compared = ", ".join(sorted({_quantity(name) for name in record["largest"]}))
    cases = f"{record['rounds']} x {len(record['seeds'])}"
    largest = max(record["largest"].values())
    cells = [compared, cases, f"{record['tolerance']:g}", f"{largest:.0e}" if largest else "0"]
    return f"{row_of(record['text'])} {' | '.join(cells)} |"


def _quantity(name: str) -> str:
    """Return what a compared quantity is, all of a kind under one word."""
    if name.startswith("bytes_"):
        return "bytes"
    if name.startswith(("accuracy", "balanced_accuracy", "loss_test")):
        return "test scores"
    plain = {"server": "server's weights", "clients": "clients' weights"}
    return plain.get(name, name.rpartition("/")[2].replace("_", " "))


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text().splitlines()
    Path(sys.argv[2]).write_text(page([json.loads(line) for line in lines]))
