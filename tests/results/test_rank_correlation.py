"""The order of methods on two data sets: correlations by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from support.refusals import refused

from fedlogit.results.analyses import analyse

ROOT = Path(__file__).parents[2]
METHODS = ("average", "uwa", "meta_model")


@pytest.fixture
def table(make_run, make_artefact):
    """Return a function from accuracies, by data set and seed, to the analysis of these runs."""

    def make(accuracies: dict[tuple[str, int], tuple[float, ...]]):
        runs = [
            make_run(accuracy, dataset=dataset, seed=seed, method=method)
            for (dataset, seed), of_methods in accuracies.items()
            for method, accuracy in zip(METHODS, of_methods, strict=False)
        ]
        return analyse(make_artefact(*runs, analysis="rank_correlation"))

    return make


def test_correlations_of_means_and_of_single_seeds_by_hand(table):
    # Of three methods 1 - 6 Σd² / (3 (9 - 1)): two that change places give 1 - 12 / 24 = 0.5.
    found = table(
        {
            ("mnist", 0): (0.9, 0.5, 0.1),
            ("mnist", 1): (0.9, 0.5, 0.1),
            ("cifar10", 0): (0.3, 0.2, 0.1),  # the same order
            ("cifar10", 1): (0.1, 0.2, 0.9),  # the reverse; means .2, .2 and .5
        }
    )
    row = found.numbers.iloc[0]
    assert (row["first"], row["second"], row["methods"]) == ("mnist", "cifar10", 3)
    assert (row["rho_low"], row["rho_high"]) == pytest.approx((-1.0, 1.0))
    # Ranks 1, 2, 3 against 2.5, 2.5, 1: covariance -0.75, variances 1 and 0.75.
    assert row["rho"] == pytest.approx(-0.75 / 0.75**0.5)
    assert row["best_first"] == "average; uwa; meta_model"
    assert row["best_second"].startswith("meta_model; ")
    assert found.shown["ρ"].tolist() == ["-0.87 (-1.00 to 1.00)"]
    assert (row["seeds_first"], row["seeds_second"]) == pytest.approx((1.0, -1.0))
    assert found.shown["ρ between seeds"].tolist() == ["1.00, -1.00"]


def test_two_that_change_places(table):
    found = table({("mnist", 0): (0.9, 0.5, 0.1), ("cifar10", 0): (0.9, 0.1, 0.5)})
    assert found.numbers["rho"].tolist() == pytest.approx([0.5])
    assert found.shown["ρ between seeds"].tolist() == ["–, –"]


def test_a_method_that_lacks_a_seed_of_a_data_set_does_not_count(table):
    accuracies = {(name, seed): (0.9, 0.5, 0.1) for name in ("mnist", "cifar10") for seed in (0, 1)}
    assert table(accuracies).numbers["methods"].tolist() == [3]
    with refused("no partition was run on two data sets with the same three methods"):
        table(accuracies | {("mnist", 1): (0.9, 0.5)})


def test_one_data_set_has_no_correlation(table):
    with refused("no partition was run on two data sets with the same three methods"):
        table({("mnist", 0): (0.9, 0.5, 0.1)})


def test_the_page_on_the_comparison_says_what_its_table_has():
    found = pd.read_csv(ROOT / "results/tables/comparison/paper/orders.csv")
    said = " ".join((ROOT / "docs/comparison.md").read_text(encoding="utf-8").split())
    two, skewed = found["rho"]
    assert f"rank correlations are {two:.2f} and {skewed:.2f}" in said
    averaging = {"fedavg", "fedprox", "cffl", "cgsv", "shapfed", "celm"}
    assert all(averaging.issuperset(best.split("; ")) for best in found["best_second"])
