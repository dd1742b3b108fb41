"""The benchmark's table: ratios by hand, and rows that are not from here are not kept."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "local_epoch.py"


@pytest.fixture(scope="module")
def benchmark():
    pytest.importorskip("torchvision")
    spec = importlib.util.spec_from_file_location("local_epoch", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ratios_are_of_the_same_turn(benchmark):
    # 8/4, 6/2, 9/1: the median is 3; the medians' own ratio would be 8/2.
    assert benchmark.ratio([8, 6, 9], [4, 2, 1]) == 3
    assert benchmark.ratio([10], [4, 2, 5]) == 2  # the only turn was the last


def test_rows_of_other_code_or_another_machine_are_dropped_and_named(benchmark, capsys):
    here = {"workload": "a", "code": "1", "machine": "m"}
    rows = [here, here | {"code": "2"}, here | {"machine": "n"}, {"workload": "a", "code": "1"}]
    kept = benchmark.keep([*rows, here | {"workload": "b"}], "a", "1", "m")
    assert kept == [here]
    assert capsys.readouterr().out == (
        "a: 3 rows dropped, measured with other code or on another machine\n"
    )
    assert benchmark.keep([here], "a", "1", "m") == [here]
    assert not capsys.readouterr().out
