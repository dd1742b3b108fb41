"""The power of the paired test, against published tables, simulation, and hand-made runs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedlogit.results.statistics.means import p_above
from fedlogit.results.statistics.power import MOST_SEEDS, power, seeds_needed
from fedlogit.results.verdicts.claim_power import POOLED, claims_power


@pytest.mark.parametrize(
    ("effect", "seeds"),
    # Known sample sizes of the one-sided paired t test at 5 % and 80 % power, for what Cohen (1988)
    # calls small, medium and large effects: 156, 27 and 12.
    [(0.2, 156), (0.5, 27), (0.8, 12)],
)
def test_seeds_needed_are_the_known_ones(effect, seeds):
    assert seeds_needed(effect) == seeds
    assert power(effect, seeds - 1) < 0.8 <= power(effect, seeds)


@pytest.mark.parametrize(("effect", "seeds"), [(1.4, 5), (2.3, 3)])
def test_what_the_docs_say_of_five_and_three_seeds(effect, seeds):
    assert power(effect - 0.05, seeds) < 0.8 <= power(effect + 0.05, seeds)  # to one decimal


@pytest.mark.parametrize(("effect", "seeds"), [(0.5, 5), (1.0, 10), (2.0, 3), (-0.3, 5)])
def test_power_is_how_often_the_test_of_claims_passes(effect, seeds):
    """Simulated with the very test that decides claims; its error is 0.7 points at 5,000 draws."""
    draws = np.random.default_rng(0).normal(effect, 1, (5000, seeds))
    passed = np.mean([p_above(differences) < 0.05 for differences in draws])
    assert power(effect, seeds) == pytest.approx(passed, abs=0.02)


def test_what_cannot_be_detected_needs_no_finite_number():
    assert math.isnan(seeds_needed(0.0))
    assert math.isnan(seeds_needed(-1.0))
    assert math.isnan(seeds_needed(0.01))  # some 62,000
    assert not math.isnan(seeds_needed(2.5 / math.sqrt(MOST_SEEDS)))
    assert (power(math.inf, 2), seeds_needed(math.inf)) == (1.0, 2)


@pytest.fixture
def made(make_run, make_artefact):
    """Claims about UWA and Average on two partitions with three seeds."""

    def make(differences: dict[str, list[float]], **options):
        runs = [
            make_run(accuracy, seed=seed, method=method, partition=partition)
            for partition, values in differences.items()
            for seed, value in enumerate(values)
            for method, accuracy in (("uwa", 0.5 + value), ("average", 0.5))
        ]
        claim = {"text": "A claim.", "from": "table1", "test": "greater"}
        claim["options"] = {
            "left": {"method": "uwa"},
            "right": {"method": "average"},
            "over": ["partition"],
        } | options
        return make_artefact(*runs, claims={"better": claim})

    return make


def _power(*arguments) -> pd.DataFrame:
    return claims_power(*arguments).set_index("comparison")


def test_a_line_for_each_cell_and_one_for_their_mean(made):
    artefact = made({"k_classes(2)": [0.01, 0.02, 0.03], "k_classes(5)": [0.03, 0.06, 0.09]})
    found = _power([artefact], 10)
    assert list(found.index) == [
        "2 classes: UWA vs Average", "k_classes(5): UWA vs Average", POOLED,
    ]  # fmt: skip
    # By hand: means 0.02 and 0.06, standard deviations 0.01 and 0.03, so an effect of 2 in both;
    # by seed the means are 0.02, 0.04, 0.06: 0.04 with 0.02, again 2.
    assert found["difference"].tolist() == pytest.approx([0.02, 0.06, 0.04])
    assert found["std"].tolist() == pytest.approx([0.01, 0.03, 0.02])
    assert found["power"].tolist() == pytest.approx([power(2.0, 10)] * 3)
    assert found["seeds_needed"].tolist() == [4, 4, 4]
    assert found["n"].tolist() == [3, 3, 3]
    assert power(2.0, 3) < 0.8 <= power(2.0, 4)


def test_it_is_the_difference_beyond_the_margin_in_the_direction_seen(made):
    # By hand: mean 0.02 less the margin 0.04 is -0.02, with 0.01: an effect of 2 the other way.
    line = _power([made({"k_classes(2)": [0.01, 0.02, 0.03]}, margin=0.04)], 4).iloc[0]
    assert line["difference"] == pytest.approx(-0.02)
    assert line["power"] == pytest.approx(power(2.0, 4))


def test_without_spread_or_seeds_there_is_nothing_to_compute(made, make_run, make_artefact):
    alike = _power([made({"k_classes(2)": [0.0, 0.0, 0.0]})], 5).iloc[0]
    assert alike["power"] == pytest.approx(0.05)  # only false alarms
    assert math.isnan(alike["seeds_needed"])
    one = _power([made({"k_classes(2)": [0.02]})], 5).iloc[0]
    assert one["n"] == 1
    assert one["difference"] == pytest.approx(0.02)
    assert one[["std", "power", "seeds_needed"]].isna().all()


def test_only_the_named_claims(made):
    artefact = made({"k_classes(2)": [0.01, 0.02, 0.03]})
    assert len(claims_power([artefact], 5, ["better"])) == 1
    assert claims_power([artefact], 5, ["other"]).empty
