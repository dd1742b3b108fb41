"""The example in docs/add-a-partition.md works as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest

from fedlogit.errors import FedlogitError
from fedlogit.partition import get

DOC = Path(__file__).parents[2] / "docs" / "add-a-partition.md"


def test_the_documented_partition(tmp_path, monkeypatch):
    source = re.search(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL).group(1)
    (tmp_path / "documented_example.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    partition = get("documented_example:LinearSizes(1)")
    assert partition.name == "linear_sizes"
    # 12 samples as 1 : 2 : 3
    parts = partition.split(np.zeros(12, int), 3, 1, 0)
    assert [len(part) for part in parts] == [2, 4, 6]
    with pytest.raises(FedlogitError, match="power = -1"):
        get("documented_example:LinearSizes(-1)")
