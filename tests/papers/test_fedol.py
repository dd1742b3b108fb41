"""FedOL's grids: what Table II is counted of, which budgets and which servers are compared."""

from pathlib import Path

import pytest
from support.small import small_spec

from fedlogit.papers import expand, load_paper
from fedlogit.results.pages.inventory import size

PAPER = load_paper("fedol", Path(__file__).parents[2] / "workflow" / "papers")


SAMPLES = {"cifar10": ((3, 32, 32), 10), "cifar100": ((3, 32, 32), 100), "digits": ((1, 8, 8), 10)}


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
    left_out = {}
    for cell in cells("extended", "ablation"):
        params = cell.spec.method.params
        changed = {key: value for key, value in params.items() if value != whole[key]}
        assert len(changed) == (cell.axes["method"] != "fedol")
        left_out |= changed
    assert left_out == {
        "negative": False, "votes": "equal", "mixture": "equal", "curriculum": False,
        "trade_off": 0.0, "iterations": 1,
    }  # fmt: skip


def test_smoke_trains_its_server_for_ten_epochs():
    assert {cell.spec.server.epochs for cell in cells("smoke", "ablation")} == {10}


def parameters(model, spec) -> int:
    return size(str(model), *SAMPLES[spec.dataset])[0]


@pytest.mark.parametrize("scale", ["paper", "heavy", "extended", "smoke"])
def test_the_larger_server_has_more_parameters_than_any_client(scale):
    sizes = {
        (parameters(spec.server.model, spec), max(parameters(m, spec) for m in spec.models))
        for spec in (cell.spec for cell in cells(scale, "larger_server"))
    }
    assert {server > client for server, client in sizes} == {True, False}
    assert all(server >= client for server, client in sizes)


def test_a_third_of_larger_server_is_in_table_1_at_extended():
    known = {cell.spec.digest() for cell in cells("extended", "table1")}
    shared = [cell.spec.digest() in known for cell in cells("extended", "larger_server")]
    assert (sum(shared), len(shared)) == (50, 150)


def test_figure_2_has_fifteen_rounds_of_what_table_1_has_one_at_extended():
    long = [cell.spec for cell in cells("extended", "figure2") if cell.axes["method"] != "fedol"]
    assert [spec.rounds for spec in long] == 60 * [15]
    once = {cell.spec.digest() for cell in cells("extended", "table1")}
    assert {spec.model_copy(update={"rounds": 1}).digest() for spec in long} <= once
