"""The partition that docs/add-a-partition.md adds, and what docs/partitions.md says of all."""

import re

import numpy as np
import pytest
from documented import ROOT, blocks

from fedlogit.component import catalogue
from fedlogit.errors import FedlogitError
from fedlogit.partition import Partition, get, make_split

TEN = np.repeat(np.arange(10), 5000)


def test_the_documented_partition(tmp_path, monkeypatch):
    (block,) = (b for b in blocks("docs/add-a-partition.md") if b.language == "python")
    (tmp_path / "documented_example.py").write_text(block.text)
    monkeypatch.syspath_prepend(tmp_path)
    partition = get("documented_example:LinearSizes(1)")
    assert partition.name == "linear_sizes"
    # 12 samples as 1 : 2 : 3
    parts = partition.split(np.zeros(12, int), 3, 1, 0)
    assert [len(part) for part in parts] == [2, 4, 6]
    with pytest.raises(FedlogitError, match="power = -1"):
        get("documented_example:LinearSizes(-1)")


def rows(header):
    """Return the cells of the tables that begin with these columns, row by row."""
    page = (ROOT / "docs/partitions.md").read_text(encoding="utf-8")
    pattern = rf"^\| {re.escape(header)} \|.*\n\|[-|]+\n((?:\|.*\n)+)"
    lines = "".join(re.findall(pattern, page, re.MULTILINE)).splitlines()
    assert lines, header
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_lists_every_partition():
    listed = [
        name
        for row in rows("partition | who holds what")
        for name in re.findall(r"`(\w+)`", row[0])
    ]
    assert sorted(listed) == sorted(catalogue("fedlogit.partition", Partition))


def test_what_other_benches_have_can_be_called_here():
    calls = [row[1].strip("`") for row in rows("there | here")]
    assert {call.partition("(")[0] for call in calls} >= {"dir_class", "dir_equal", "quantity"}
    for call in calls:
        groups = np.arange(50_000) % 20
        assert len(make_split(TEN, 10, call, 20, 0, groups=groups).clients) == 20


def test_the_skew_that_is_left_is_what_the_page_says():
    for clients, call, meant, dealt in rows("clients"):
        alpha = get(call.strip("`")).params()["alpha"]
        assert f"{(1 + alpha / 10) / (1 + alpha):.2f}" == meant
        counts = [make_split(TEN, 10, call.strip("`"), int(clients), s).counts for s in range(5)]
        shares = [c / c.sum(axis=1, keepdims=True) for c in counts]
        assert f"{np.mean([(q**2).sum(axis=1).mean() for q in shares]):.2f}" == dealt
