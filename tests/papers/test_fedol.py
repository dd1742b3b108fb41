"""FedOL's grids: what Table II is counted of, and which budgets are compared."""

from pathlib import Path

import pytest
from support.small import small_spec

from fedlogit.papers import expand, load_paper

PAPER = load_paper("fedol", Path(__file__).parents[2] / "workflow" / "papers")


def cells(scale, id_):
    return next(a for a in expand(PAPER, scale) if a.id == id_).cells


@pytest.mark.parametrize("scale", ["paper", "heavy", "extended"])
def test_table_2_is_counted_of_the_papers_sizes_at_every_scale(scale):
    specs = [cell.spec for cell in cells(scale, "table2")]
    assert {call.name for spec in specs for call in spec.models} == {"resnet20_heavy"}
    assert {(spec.public.size, spec.train_size, spec.clients) for spec in specs} == {
        (5000, None, 10)
    }
    assert all(spec.ledger_only and spec.seed == 0 for spec in specs)
    assert {spec.dataset for spec in specs} >= {"cifar10"}


def epochs(spec) -> int:
    """Return how many epochs the server's model trains in all."""
    return spec.server.epochs * spec.method.params.get("iterations", 1)


@pytest.mark.parametrize(("scale", "budgets"), [("paper", {50, 500}), ("extended", {10, 100})])
def test_every_method_has_both_budgets(scale, budgets):
    found: dict = {}
    for cell in cells(scale, "budget"):
        key = (cell.axes["method"], cell.axes["partition"], cell.spec.seed)
        found.setdefault(key, []).append(epochs(cell.spec))
    assert all(sorted(each) == sorted(budgets) for each in found.values())
    assert {key[0] for key in found} == {"fedol", "feddf", "fedhkt", "fedet", "mine"}


def test_half_of_the_budget_table_is_in_table_1():
    known = {cell.spec.digest() for cell in cells("extended", "table1")}
    shared = [cell.spec.digest() in known for cell in cells("extended", "budget")]
    assert (sum(shared), len(shared)) == (50, 100)


def test_the_ablation_leaves_out_one_part_at_a_time():
    whole = small_spec(method="fedol").method.params
    for cell in cells("extended", "ablation"):
        changed = {key for key, value in cell.spec.method.params.items() if value != whole[key]}
        assert len(changed) == (cell.axes["method"] != "fedol")


def test_smoke_trains_its_server_for_ten_epochs():
    assert {cell.spec.server.epochs for cell in cells("smoke", "ablation")} == {10}
