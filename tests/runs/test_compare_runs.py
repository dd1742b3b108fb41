"""Runs are compared by their rows and by every tensor that one of them has."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from fedlogit.runs.compare_runs import approximate_difference, exact_difference

VALUE = torch.arange(4.0)
OTHERS = {
    "a tensor less": {},
    "a tensor more": {"a": VALUE, "b": VALUE + 1},
    "another shape": {"a": VALUE.view(2, 2)},
}


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes what is compared of a run."""

    def write(name: str, weights: dict[str, torch.Tensor]) -> Path:
        (tmp_path / name / "exports").mkdir(parents=True)
        (tmp_path / name / "rounds.csv").write_text("round,loss\n1,0.5\n")
        save_file(weights, tmp_path / name / "exports" / "weights.safetensors")
        return tmp_path / name

    return write


@pytest.mark.parametrize("compare", [exact_difference, approximate_difference])
@pytest.mark.parametrize("other", OTHERS)
def test_a_tensor_that_one_run_lacks_is_a_difference_in_either_order(folder, compare, other):
    one, two = folder("one", {"a": VALUE}), folder("two", OTHERS[other])
    name = "b" if "b" in OTHERS[other] else "a"
    for pair in ((one, two), (two, one)):
        assert compare(*pair).startswith(f"the final weights {name} are ")
        assert compare(pair[0], pair[0]) == ""


def test_only_an_exact_comparison_finds_what_rounding_explains(folder):
    one, two = folder("one", {"a": VALUE}), folder("two", {"a": VALUE + 1e-3})
    assert exact_difference(one, two) == "the final weights a are not the same"
    assert approximate_difference(one, two) == ""
    far = folder("far", {"a": VALUE + 1})
    assert approximate_difference(one, far) == "the final weights a are 2 apart"
