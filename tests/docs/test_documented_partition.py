"""The partition that docs/add-a-partition.md adds divides as the page says."""

import numpy as np
import pytest
from documented import blocks

from fedlogit.errors import FedlogitError
from fedlogit.partition import get


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
