from __future__ import annotations

import math
import re

import pandas as pd
import pytest
from support.sealed import seal

from fedlogit.errors import FedlogitError
from fedlogit.papers.schema import CLAIM_TESTS
from fedlogit.results.summary import write_summary
from fedlogit.results.verdicts import claims
from fedlogit.results.verdicts.claim_names import naming_of
from fedlogit.results.verdicts.claim_tests import TESTS, Evidence, pooled
from fedlogit.results.verdicts.claims import (
    claims_markdown,
    evidence_markdown,
    judge_claims,
    result_text,
)

# Seeds are given as three accuracies around the mean, equally for both sides, so that paired
# differences are the difference of the means exactly, whatever the spread.
SPREAD = (-0.02, 0.0, 0.02)


@pytest.fixture
def runs(make_run):
    def make(mean: float, spread=SPREAD, **changes) -> list:
        return [make_run(round(mean + s, 6), seed=i, **changes) for i, s in enumerate(spread)]

    return make


@pytest.fixture
def judge(make_artefact):
    def go(runs, test, missing=(), labels=None, **options):
        claim = {
            "text": "A claim.",
            "section": "§4.4",
            "from": "table1",
            "test": test,
            "options": options,
        }
        planned = [{"before": before, "axes": AXES | axes} for before, axes in missing]
        given = {
            "claims": {"c": claim},
            "missing": planned,
            **({"labels": labels} if labels else {}),
        }
        return judge_claims(make_artefact(*runs, **given)).iloc[0]

    return go


@pytest.fixture
def logged():
    """Return a function that adds columns to a run's rounds, as a method logs them."""

    def go(run, **columns):
        path = run.dir / "rounds.csv"
        pd.read_csv(path).assign(**columns).to_csv(path, index=False)
        seal(run.dir)
        return run

    return go


AXES = {"dataset": "mnist", "partition": "k_classes(2)", "method": "average"}


def lost(before: int, **axes) -> list:
    """Return three runs, one per seed, that are planned after `before` others and do not exist."""
    return [(before, axes | {"seed": seed}) for seed in range(3)]


GREATER = {"left": {"method": "uwa"}, "right": {"method": "average"}}


def test_each_kind_of_claim_has_its_test():
    assert tuple(TESTS) == CLAIM_TESTS


def test_greater_holds(runs, judge):
    row = judge(runs(0.6) + runs(0.7, method="uwa"), "greater", **GREATER)
    assert row["result"] == "holds"
    assert row["agree"] == "1 of 1"
    assert row["evidence"] == (
        "UWA vs Average: 0.7000 vs 0.6000 (n=3, 0.1000 [0.1000 to 0.1000], p=0)"
    )
    assert (row["cells"], row["pooled"], row["run"]) == ("holds", "holds", "1 of 1")
    assert row["scale"] == "paper"


def test_greater_does_not_hold(runs, judge):
    row = judge(runs(0.7) + runs(0.6, method="uwa"), "greater", **GREATER)
    assert row["result"] == "does not hold"
    assert row["agree"] == "0 of 1"
    assert row["evidence"].endswith("p=1), not as claimed")


def test_greater_within_noise_is_undecided(runs, judge):
    # Differences .01 + (-.04, 0, .04): noise 2.920 x .04 / sqrt(3) = .0674 > .01.
    noisy = runs(0.61, spread=(0.02, 0.0, -0.02), method="uwa")
    row = judge(runs(0.6) + noisy, "greater", **GREATER)
    assert result_text(row) == "undecided, intervals are too wide"
    assert "(n=3, 0.0100 [-0.0574 to 0.0774], p=0.35)" in row["evidence"]


# .06, .10 and .14 are above .05 by .05 on average: t = .05 / (.04 / √3) = 2.165, and p =
# (1 - t / √(t² + 2)) / 2 = .081; above 0 it would be .025. The interval is .1 ± .0674 all the same.
def test_the_p_value_shown_is_that_of_the_margin(runs, judge):
    noisy = runs(0.7, spread=(-0.06, 0.0, 0.06), method="uwa")
    row = judge(runs(0.6) + noisy, "greater", margin=0.05, **GREATER)
    assert row["evidence"].endswith("(n=3, 0.1000 [0.0326 to 0.1674], p=0.081)")
    assert result_text(row) == "undecided, intervals are too wide"


# Differences d + (-s, 0, s): the 90 % interval is d ± 2.920 s / sqrt(3) = d ± 1.686 s.
@pytest.mark.parametrize(
    ("difference", "scatter", "expected"),
    [
        (0.004, 0.003, "no difference larger than 1 point"),  # .004 ± .0051
        (-0.004, 0.003, "no difference larger than 1 point"),
        (0.006, 0.005, "no difference larger than 3 points"),  # .006 ± .0084
        (0.01, 0.012, "undecided"),  # .01 ± .0202
    ],
)
def test_what_is_neither_above_nor_below_may_be_near(runs, judge, difference, scatter, expected):
    near = [(mean, spread) for mean, spread in zip(SPREAD, (-scatter, 0, scatter), strict=True)]
    theirs = runs(0.6 + difference, spread=[a + b for a, b in near], method="uwa")
    assert judge(runs(0.6) + theirs, "greater", **GREATER)["result"] == expected
    wide = [mean + spread for mean, spread in zip(SPREAD, (-0.1, 0, 0.1), strict=True)]
    far = runs(0.6, dataset="cifar10") + runs(0.6, wide, dataset="cifar10", method="uwa")
    row = judge(runs(0.6) + theirs + far, "greater", over=["dataset"], **GREATER)
    assert row["result"] == "undecided", "all cells must be near"


def test_nearness_is_of_shares_alone(monkeypatch, runs, judge):
    pair = runs(0.6) + runs(0.604, spread=(-0.023, 0.0, 0.023), method="uwa")
    assert judge(pair, "greater", **GREATER)["result"] == "no difference larger than 1 point"
    monkeypatch.setattr(claims, "is_share", lambda metric: metric != "accuracy")
    assert judge(pair, "greater", **GREATER)["result"] == "undecided"


def test_one_seed_is_undecided_but_shows_the_direction(runs, judge):
    pair = runs(0.6, spread=(0,)) + runs(0.9, spread=(0,), method="uwa")
    row = judge(pair, "greater", **GREATER)
    assert result_text(row) == "undecided, one seed"
    assert row["agree"] == "1 of 1"
    assert row["evidence"] == "UWA vs Average: 0.9000 vs 0.6000 (n=1)"


def test_one_cell_of_one_seed_is_why_a_claim_is_undecided(runs, judge):
    cells = runs(0.6) + runs(0.7, method="uwa")
    for method, mean in (("average", 0.6), ("uwa", 0.7)):
        cells += runs(mean, spread=(0,), dataset="cifar10", method=method)
    row = judge(cells, "greater", over=["dataset"], **GREATER)
    # With one common seed there is no mean over cells to test, either.
    assert result_text(row) == "undecided, one seed"
    assert (row["run"], row["agree"]) == ("2 of 2", "2 of 2")


def test_margin_may_demand_more_or_less(runs, judge):
    pair = runs(0.6) + runs(0.65, method="uwa")
    assert judge(pair, "greater", margin=0.1, **GREATER)["result"] == "does not hold"
    assert judge(pair, "greater", margin=0.04, **GREATER)["result"] == "holds"
    swapped = {"left": GREATER["right"], "right": GREATER["left"]}
    assert judge(pair, "greater", margin=-0.06, **swapped)["result"] == "holds"


def test_a_ratio_may_be_claimed(runs, judge):
    # Twice .3 + (-.02, 0, .02) is .6 + (-.04, 0, .04), which .65 + (-.04, 0, .04) is .05 above.
    pair = runs(0.3) + runs(0.65, spread=(-0.04, 0.0, 0.04), method="uwa")
    row = judge(pair, "greater", times=2, **GREATER)
    assert row["result"] == "holds"
    assert row["evidence"].startswith("UWA vs 2 × Average: 0.6500 vs 0.6000 (n=3, 0.0500 [")
    assert judge(pair, "greater", times=2.5, **GREATER)["result"] == "does not hold"  # .75
    assert judge(pair, "greater", times=2, margin=0.06, **GREATER)["result"] == "does not hold"


def test_what_is_near_a_multiple_is_no_small_difference(runs, judge):
    # Differences .004 + (-.003, 0, .003): their 90 % interval is .004 ± .0051.
    pair = runs(0.3) + runs(0.604, spread=(-0.043, 0.0, 0.043), method="uwa")
    row = judge(pair, "greater", times=2, **GREATER)
    assert result_text(row) == "undecided, intervals are too wide"


def test_every_cell_must_hold(runs, judge):
    good = runs(0.6) + runs(0.7, method="uwa")
    bad = runs(0.9, dataset="cifar10") + runs(0.8, dataset="cifar10", method="uwa")
    row = judge(good + bad, "greater", over=["dataset"], **GREATER)
    assert row["result"] == "does not hold"
    assert row["agree"] == "1 of 2"
    assert "[0.1000 to 0.1000], p=0); cifar10: UWA vs" in row["evidence"]
    only = judge(good + bad, "greater", where={"dataset": "mnist"}, **GREATER)
    assert only["result"] == "holds"


def test_only_combinations_that_exist_are_cells(runs, judge):
    # Each dataset has a partition of its own; the two others of four combinations cannot be run.
    pairs = [("mnist", "k_classes(2)"), ("cifar10", "k_classes(5)")]
    both = [
        run
        for dataset, partition in pairs
        for method, mean in (("average", 0.6), ("uwa", 0.7))
        for run in runs(mean, dataset=dataset, partition=partition, method=method)
    ]
    row = judge(both, "greater", over=["dataset", "partition"], **GREATER)
    assert row["result"] == "holds"
    assert row["agree"] == "2 of 2"


def test_a_listed_cell_that_is_not_planned_leaves_the_claim_undecided(runs, judge):
    pair = runs(0.6) + runs(0.7, method="uwa")
    where = {"dataset": ["mnist", "cifar10"]}
    row = judge(pair, "greater", where=where, over=["dataset"], **GREATER)
    assert row["result"] == "undecided"
    assert "cifar10: UWA vs Average: not planned" in row["evidence"]
    assert (row["run"], row["agree"]) == ("1 of 2", "1 of 1")


def test_a_planned_cell_that_was_not_run_leaves_the_claim_undecided(runs, judge):
    pair = runs(0.6) + runs(0.7, method="uwa")
    missing = lost(6, dataset="cifar10") + lost(6, dataset="cifar10", method="uwa")
    alone = judge(pair, "greater", over=["dataset"], **GREATER)
    assert (alone["result"], alone["run"]) == ("holds", "1 of 1")
    row = judge(pair, "greater", missing, over=["dataset"], **GREATER)
    assert (row["result"], row["run"], row["agree"]) == ("undecided", "1 of 2", "1 of 1")
    assert row["evidence"].endswith("cifar10: UWA vs Average: not run")
    assert result_text(row) == "undecided, 1 of 2 run (mnist: holds)"


def test_a_data_set_with_all_its_runs_is_judged_alone_as_if_nothing_else_were_planned(runs, judge):
    """With two cells, of which one is on another data set, by partitions that imply it."""
    pair = runs(0.6) + runs(0.7, method="uwa")
    there = runs(0.6, partition="k_classes(4)") + runs(0.5, method="uwa", partition="k_classes(4)")
    elsewhere = {"dataset": "cifar10", "partition": "pls"}
    missing = lost(12, **elsewhere) + lost(12, method="uwa", **elsewhere)
    whole = judge(pair, "greater", missing, over=["partition"], **GREATER)
    assert whole["by_dataset"] == "mnist: holds"
    fails = judge(pair + there, "greater", missing, over=["partition"], **GREATER)
    assert (fails["result"], fails["by_dataset"]) == ("does not hold", ""), "whatever is missing"
    half = lost(6, partition="k_classes(4)")
    half += lost(6, partition="k_classes(4)", method="uwa")
    begun = judge(pair, "greater", half + missing, over=["partition"], **GREATER)
    assert begun["run"] == "1 of 3"
    assert begun["by_dataset"] == "", "no data set has all of its runs"
    same = runs(0.6, (0.0, 0.03, -0.03)) + runs(0.6, method="uwa")
    wide = judge(same, "greater", missing, over=["partition"], **GREATER)
    assert result_text(wide) == "undecided, 1 of 2 run (mnist: undecided, intervals are too wide)"


@pytest.mark.parametrize("dataset", [{"dataset": "mnist"}, {}])
def test_a_data_set_is_not_judged_alone_where_a_listed_cell_is_not_planned(runs, judge, dataset):
    """As at a scale that leaves out a partition which the claim names."""
    pair = runs(0.6) + runs(0.7, method="uwa")
    where = dataset | {"partition": ["k_classes(2)", "k_classes(4)"]}
    row = judge(pair, "greater", where=where, over=["partition"], **GREATER)
    assert (row["run"], row["by_dataset"]) == ("1 of 2", "")


def test_a_planned_rival_that_was_not_run_leaves_the_claim_undecided(runs, judge):
    field = runs(0.6) + runs(0.8, method="meta_model")
    row = judge(field, "best", lost(3, method="uwa"), left={"method": "meta_model"})
    assert (row["result"], row["run"], row["agree"]) == ("undecided", "1 of 2", "1 of 1")


def test_a_planned_seed_that_was_not_run_leaves_the_claim_undecided(runs, judge):
    pair = runs(0.6) + runs(0.7, method="uwa")
    row = judge(pair, "greater", [(3, {"seed": 3}), (6, {"method": "uwa", "seed": 3})], **GREATER)
    assert (row["result"], row["cells"], row["run"]) == ("undecided", "undecided", "0 of 1")
    assert result_text(row) == "undecided, 3 of 4 seeds run"
    assert "vs 0.6000 (n=3 of 4, 0.1000 [" in row["evidence"]
    one_side = judge(pair[:5], "greater", [(5, {"method": "uwa", "seed": 2})], **GREATER)
    assert "0.6900 vs 0.5900 (n=2 of 3, 0.1000 [" in one_side["evidence"]
    below = judge(runs(0.7) + runs(0.6, method="uwa"), "greater",
                  [(3, {"seed": 3}), (6, {"method": "uwa", "seed": 3})], **GREATER)  # fmt: skip
    assert below["result"] == "undecided", "the missing seed may turn it"


def test_a_cell_that_lacks_a_seed_does_not_count_among_those_that_agree(runs, judge):
    pair = runs(0.6) + runs(0.7, method="uwa")
    pair += runs(0.6, dataset="cifar10")
    pair += runs(0.7, spread=SPREAD[:2], dataset="cifar10", method="uwa")
    missing = [(11, {"dataset": "cifar10", "method": "uwa", "seed": 2})]
    row = judge(pair, "greater", missing, over=["dataset"], **GREATER)
    assert (row["run"], row["agree"]) == ("1 of 2", "1 of 1")


def test_a_seed_that_only_one_side_plans_is_not_missing(runs, judge):
    pair = runs(0.6) + runs(0.7, method="uwa")
    row = judge(pair, "greater", [(6, {"method": "uwa", "seed": 3})], **GREATER)
    assert (row["result"], row["run"]) == ("holds", "1 of 1")


def test_what_was_not_run_cannot_mend_what_fails(runs, judge):
    pair = runs(0.7) + runs(0.6, method="uwa")
    missing = lost(6, dataset="cifar10") + lost(6, dataset="cifar10", method="uwa")
    row = judge(pair, "greater", missing, over=["dataset"], **GREATER)
    assert result_text(row) == "does not hold, 1 of 2 run"


def test_an_end_of_an_axis_that_was_not_run_is_not_replaced_by_another(runs, judge):
    # k = 2 is planned before 5 and 8, and missing.
    ran = [
        run
        for k, gap in ((5, 0.1), (8, 0.0))
        for method, mean in (("average", 0.6), ("uwa", 0.6 + gap))
        for run in runs(mean, partition=f"k_classes({k})", method=method)
    ]
    missing = lost(0) + lost(0, method="uwa")
    row = judge(ran, "shrinking", missing, **SHRINKING)
    assert row["evidence"] == "UWA − Average, from 2 classes to k_classes(8): not run"
    last = lost(12, partition="k_classes(10)")
    row = judge(
        ran, "shrinking", last + lost(12, partition="k_classes(10)", method="uwa"), **SHRINKING
    )
    assert row["evidence"] == "UWA − Average, from k_classes(5) to k_classes(10): not run"


def test_a_table_without_runs_is_not_run(judge):
    row = judge([], "greater", lost(0) + lost(0, method="uwa"), **GREATER)
    assert (row["result"], row["cells"], row["pooled"]) == ("not run",) * 3
    assert result_text(row) == "not run"


def test_a_number_on_an_axis_is_found_though_nothing_was_run(judge):
    """An empty frame of runs beside those that are missing would make 50 a 50.0."""
    places = [lost(0, method=m, **{"server.epochs": 50}) for m in ("average", "uwa")]
    row = judge(
        [],
        "greater",
        [place for part in places for place in part],
        left={"method": "uwa", "server.epochs": 50},
        right={"method": "average"},
        over=["dataset"],
    )
    assert (row["result"], row["run"]) == ("not run", "0 of 1")


# Each data set alone: differences 0, .2, .4 have t = .2 √3 / .2 = 1.732, p = (1 - 1.732/√5) / 2 =
# .11; but the mean over both, of each seed, is .2, .2, .2.
def test_a_claim_may_hold_on_average(runs, judge):
    both = runs(0.5) + runs(0.7, spread=(-0.22, 0, 0.22), method="uwa")
    both += runs(0.5, dataset="cifar10")
    both += runs(0.7, spread=(0.18, 0, -0.18), dataset="cifar10", method="uwa")
    row = judge(both, "greater", over=["dataset"], **GREATER)
    # 90 %: .2 ± 2.920 x .2 / √3 = .2 ± .3372
    said = "mnist: UWA vs Average: 0.7000 vs 0.5000 (n=3, 0.2000 [-0.1372 to 0.5372], p=0.11)"
    assert said in row["evidence"]
    assert [row[key] for key in ("cells", "pooled", "result")] == [
        "undecided",
        "holds",
        "holds on average",
    ]
    row = judge(both, "greater", over=["dataset"], margin=0.4, **GREATER)
    assert row["result"] == "does not hold on average"


@pytest.mark.parametrize(
    ("values", "planned", "agrees", "whole"),
    [
        ([0.125, 0.25], 2, True, True),
        ([0.125, 0.125], 2, False, True),  # equal to the margin is not above it
        ([0.2503 - 0.1253] * 3, 3, False, True),  # nor is what rounding puts above
        ([0.125, 0.25], 3, True, False),
        ([0.5, math.nan], 2, False, True),
        ([0.5], 1, True, True),
        ([], 0, False, False),
        ([], 1, False, False),
    ],
)
def test_what_agrees_and_what_is_whole(values, planned, agrees, whole):
    evidence = Evidence("", pd.Series(values, dtype=float), 0.125, planned)
    assert (evidence.agrees, evidence.whole) == (agrees, whole)


def test_means_over_cells_are_of_the_seeds_that_all_have():
    def cell(*values, seeds=(0, 1, 2), rival="a"):
        return Evidence("", pd.Series(values, index=seeds), 0.1, 3, rival)

    found = [cell(1.0, 2.0, 3.0), cell(3.0, 5.0, seeds=(0, 2)), cell(9.0, 9.0, 9.0, rival="b")]
    (first, margin), (second, _) = pooled(found).values()
    assert (first.tolist(), margin) == ([2.0, 4.0], 0.1)  # (1 + 3) / 2 and (3 + 5) / 2
    assert second.tolist() == [9.0, 9.0, 9.0]
    ((diverged, _),) = pooled([cell(1.0, math.nan, 3.0), cell(1.0, 2.0, 3.0)]).values()
    assert math.isnan(diverged[1])


def test_rivals_are_pooled_one_by_one(runs, judge):
    # On average .1 above both rivals together, but .1 below one of them.
    field = runs(0.8, method="meta_model") + runs(0.5) + runs(0.9, method="uwa")
    row = judge(field, "best", left={"method": "meta_model"})
    assert (row["pooled"], row["result"]) == ("does not hold", "does not hold")


@pytest.mark.parametrize("over", [[], ["dataset"]])
def test_what_a_scale_leaves_out_is_not_planned_rather_than_not_run(runs, judge, over):
    row = judge(runs(0.6), "greater", over=over, **GREATER)
    assert (row["result"], row["cells"], row["pooled"]) == ("not planned",) * 3
    assert result_text(row) == "not planned"
    assert row["agree"] == row["reason"] == ""
    assert "not run" not in row["evidence"]


def test_one_pair_that_is_planned_and_missing_makes_a_claim_not_run(runs, judge):
    missing = lost(3) + lost(3, method="uwa")
    row = judge(runs(0.6, dataset="cifar10"), "greater", missing, over=["dataset"], **GREATER)
    assert row["result"] == "not run"
    where = {"dataset": ["mnist", "cifar10"]}
    row = judge(
        runs(0.6, dataset="cifar10"), "greater", missing, over=["dataset"], where=where, **GREATER
    )
    assert (row["result"], row["run"]) == ("not run", "0 of 2")
    assert row["evidence"] == (
        "mnist: UWA vs Average: not run; cifar10: UWA vs Average: not planned"
    )


def test_a_legend_says_what_not_planned_means_where_a_claim_is(runs, make_artefact):
    claim = {"text": "A claim.", "from": "table1", "test": "greater", "options": GREATER}

    def text(ran) -> str:
        made = make_artefact(*ran, claims={"c": claim})
        return claims_markdown(judge_claims(made), [made])

    legend = "*Not planned*: the scale or the settings leave out runs that the claim compares."
    assert legend in text(runs(0.6))
    assert legend not in text(runs(0.6) + runs(0.7, method="uwa"))


def test_a_diverged_run_leaves_the_claim_undecided(runs, make_run, judge):
    pair = runs(0.6)[:2] + runs(0.7, method="uwa")[:2]
    lost = [make_run(seed=2), make_run(seed=2, method="uwa", status="diverged")]
    row = judge(pair + lost, "greater", **GREATER)
    assert result_text(row) == "undecided, a run diverged"


def test_sides_may_compare_metrics_of_the_same_runs(make_run, judge):
    curves = [make_run([0.1, 0.69 + s, 0.7 + s], seed=i) for i, s in enumerate((0.0, 0.1, 0.2))]
    side = {"method": "average"}
    early = {"left": {**side, "metric": "accuracy@2"}, "right": side}
    assert judge(curves, "greater", margin=-0.02, **early)["result"] == "holds"
    assert judge(curves, "greater", margin=-0.005, **early)["result"] == "does not hold"


@pytest.mark.parametrize(
    ("metric", "lacking"), [("doubt", "runs of average"), ("f1_score", "runs of uwa")]
)
def test_a_claim_on_a_column_that_a_side_does_not_log_is_undecided_and_fails_no_other(
    make_run, make_artefact, logged, tmp_path, metric, lacking
):
    runs = [make_run(0.6), logged(make_run(0.7, method="uwa"), doubt=[0.5, 0.4, 0.3])]
    compared = {"text": "A claim.", "from": "table1", "test": "greater"}
    claims = {
        "doubted": compared | {"options": {**GREATER, "metric": metric}},
        "other": compared | {"options": GREATER},
    }
    artefact = make_artefact(*runs, metrics=["accuracy", "doubt"], claims=claims)
    rows = judge_claims(artefact).set_index("id")
    said = f"{lacking} lack the metric {metric!r}"
    assert result_text(rows.loc["doubted"]) == f"undecided, {said}"
    assert rows.loc["doubted", "evidence"] == f"UWA vs Average: {said}"
    assert rows.loc["doubted", "run"] == "0 of 1"
    assert rows.loc["other", "evidence"] == "UWA vs Average: 0.7000 vs 0.6000 (n=1)"
    assert rows.loc["other", "agree"] == "1 of 1"
    reference = pd.DataFrame(columns=["table", "metric"])
    (*_, text) = write_summary([artefact], reference, tmp_path / "summary")
    assert f"undecided, {said}" in text.read_text()


def test_one_cell_without_the_metric_leaves_the_others_their_numbers(make_run, judge, logged):
    there = {"partition": "k_classes(5)"}
    runs = [make_run(method=method, **at) for at in ({}, there) for method in ("uwa", "average")]
    runs = [*(logged(run, doubt=[0.5] * 3) for run in runs[:3]), runs[3]]
    row = judge(runs, "greater", over=["partition"], metric="doubt", **GREATER)
    assert result_text(row) == "undecided, runs of average lack the metric 'doubt'"
    assert "2 classes: UWA vs Average: 0.5000 vs 0.5000 (n=1), not as claimed; " in row["evidence"]
    assert row["run"] == "1 of 2"


def test_a_metric_that_the_scale_is_too_short_for_leaves_it_undecided(runs, judge):
    side = {"method": "average"}
    row = judge(runs(0.6), "greater", left={**side, "metric": "accuracy@10"}, right=side)
    assert (row["result"], row["run"], row["agree"]) == ("undecided", "0 of 1", "")
    assert row["reason"] == "runs end before round 10"


def test_best_beats_all_other_methods_but_the_reference(runs, judge):
    field = runs(0.6) + runs(0.7, method="uwa") + runs(0.95, method="fully_informed")
    best = {"left": {"method": "meta_model"}}
    assert judge(field + runs(0.8, method="meta_model"), "best", **best)["result"] == "holds"
    row = judge(field + runs(0.65, method="meta_model"), "best", **best)
    assert row["result"] == "does not hold"
    assert row["agree"] == "1 of 2"


def test_best_among_listed_rivals(runs, judge):
    field = runs(0.6) + runs(0.7, method="uwa") + runs(0.65, method="meta_model")
    best = {"left": {"method": "meta_model"}, "right": {"method": ["average"]}}
    assert judge(field, "best", **best)["result"] == "holds"


# Average at .70 and a rival that is above or below it: two one-sided tests against 2 points.
@pytest.mark.parametrize(
    ("rival", "scatter", "expected", "agree"),
    [
        (0.71, 0.0, "holds", "2 of 2"),
        (0.69, 0.0, "holds", "2 of 2"),
        (0.75, 0.0, "does not hold", "1 of 2"),
        (0.65, 0.0, "does not hold", "1 of 2"),
        (0.71, 0.02, "undecided", "2 of 2"),  # an interval of ±3.4 points about one
    ],
)
def test_alike_is_neither_below_nor_above(runs, judge, rival, scatter, expected, agree):
    other = runs(rival, [s + scatter * sign for s, sign in zip(SPREAD, (-1, 0, 1), strict=True)],
                 method="uwa")  # fmt: skip
    sides = {"left": {"method": "average"}, "right": {"method": ["uwa"]}}
    row = judge(runs(0.7) + other, "alike", margin=0.02, **sides)
    assert (row["result"], row["agree"]) == (expected, agree)
    first, second = row["evidence"].split("; ")
    assert first.startswith(f"Average vs UWA: 0.7000 vs {rival:.4f} (n=3, {0.7 - rival:.4f}")
    assert second.startswith(f"UWA vs Average: {rival:.4f} vs 0.7000 (n=3, {rival - 0.7:.4f}")


def test_a_label_does_not_tear_a_line_of_evidence_apart(runs, judge):
    labels = {"uwa": "UWA; weighted", "average": "Average"}
    row = judge(runs(0.6) + runs(0.7, method="uwa"), "greater", labels=labels, **GREATER)
    (line,) = re.findall("^- (.*)$", evidence_markdown(pd.DataFrame([row])), re.MULTILINE)
    assert line.startswith("UWA, weighted vs Average: 0.7000 vs 0.6000 (n=3")


def test_alike_is_of_every_rival(runs, judge):
    field = runs(0.7) + runs(0.71, method="uwa") + runs(0.69, method="meta_model")
    row = judge(field, "alike", margin=0.02, left={"method": "average"})
    assert (row["result"], row["run"]) == ("holds", "4 of 4")
    row = judge(field, "alike", margin=0.005, left={"method": "average"})
    assert (row["result"], row["agree"]) == ("does not hold", "2 of 4")


def test_alike_may_be_of_one_rival_or_of_the_same_runs_at_another_round(runs, judge, make_run):
    pair = runs(0.7) + runs(0.71, method="uwa")
    row = judge(pair, "alike", margin=0.02, left={"method": "average"}, right={"method": "uwa"})
    assert (row["result"], row["run"]) == ("holds", "2 of 2")
    # 0.62 after two rounds, 0.60 after three: below by 0.02, which "greater" with a margin misses.
    falling = [make_run([0.5, 0.62 + s, 0.6 + s], seed=i) for i, s in enumerate(SPREAD)]
    sides = {"left": {"method": "average", "metric": "accuracy@2"}, "right": {"method": "average"}}
    assert judge(falling, "alike", margin=0.01, **sides)["result"] == "does not hold"
    assert judge(falling, "alike", margin=0.03, **sides)["result"] == "holds"
    assert judge(falling, "greater", margin=-0.01, **sides)["result"] == "holds"


def _gaps(runs, first: float, last: float) -> list:
    few, many = "k_classes(2)", "k_classes(8)"
    return [
        *runs(0.6, partition=few),
        *runs(0.6 + first, partition=few, method="uwa"),
        *runs(0.8, partition=many),
        *runs(0.8 + last, partition=many, method="uwa"),
    ]


SHRINKING = {**GREATER, "along": "partition"}


# A loss of .13 is less than a loss of .005 and than a gain of .005, although it is the larger gap.
@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0.13, 0.005, "holds"),
        (0.13, -0.005, "holds"),
        (0.005, -0.13, "holds"),
        (-0.13, -0.005, "does not hold"),
        (-0.13, 0.005, "does not hold"),
    ],
)
def test_shrinking_compares_signed_gaps(runs, judge, first, last, expected):
    row = judge(_gaps(runs, first, last), "shrinking", **SHRINKING)
    assert row["result"] == expected
    shown = f"{first:.4f} → {last:.4f} (n=3, {first - last:.4f} ["
    assert f"UWA − Average, from 2 classes to k_classes(8): {shown}" in row["evidence"]


# From .13 to .005 in size, whichever side is ahead.
@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(0.13, -0.005, "holds"), (-0.13, 0.005, "holds"), (0.005, -0.13, "does not hold")],
)
def test_shrinking_compares_sizes_if_the_claim_says_so(runs, judge, first, last, expected):
    row = judge(_gaps(runs, first, last), "shrinking", size=True, **SHRINKING)
    assert row["result"] == expected
    assert (
        f"|UWA − Average|, from 2 classes to k_classes(8): {abs(first):.4f} → {abs(last):.4f}"
        in row["evidence"]
    )


def test_the_size_of_a_gap_is_that_of_its_mean(runs, judge, make_run):
    """With two classes seeds scatter: their sizes have the mean .1, but the gap is .02."""
    found = [
        make_run(0.5 + gap, seed=seed, method="uwa", partition=partition)
        for partition, gaps in (("k_classes(2)", (0.12, -0.08)), ("k_classes(8)", (-0.05, -0.05)))
        for seed, gap in enumerate(gaps)
    ]
    level = [
        make_run(0.5, seed=seed, partition=partition)
        for partition in ("k_classes(2)", "k_classes(8)")
        for seed in range(2)
    ]
    row = judge(found + level, "shrinking", size=True, **SHRINKING)
    assert "0.0200 → 0.0500" in row["evidence"]
    assert row["evidence"].endswith("not as claimed")


def test_shrinking_does_not_hold(runs, judge):
    assert judge(_gaps(runs, 0.005, 0.13), "shrinking", **SHRINKING)["result"] == "does not hold"


def test_nothing_shrinks_along_one_value(runs, judge):
    row = judge(runs(0.6) + runs(0.7, method="uwa"), "shrinking", **SHRINKING)
    assert (row["result"], row["cells"]) == ("not planned", "not planned")
    assert row["evidence"] == "two values of the axis partition: not planned"


def test_shrinking_order_can_be_given(runs, judge):
    where = {"partition": ["k_classes(8)", "k_classes(2)"]}
    row = judge(_gaps(runs, 0.005, 0.13), "shrinking", where=where, **SHRINKING)
    assert row["result"] == "holds"


def test_shrinking_of_one_side_alone(runs, judge):
    row = judge(_gaps(runs, 0, 0), "shrinking", left={"method": "average"}, along="partition")
    assert row["result"] == "does not hold"  # .6 grows to .8


def test_a_side_may_stand_off_the_axis(runs, judge):
    reference = runs(0.9, method="fully_informed", partition="iid")
    left = {"method": "fully_informed", "partition": "*"}
    where = {"partition": ["k_classes(2)", "k_classes(8)"]}
    options = {"left": left, "right": {"method": "average"}, "along": "partition", "where": where}
    row = judge(_gaps(runs, 0, 0) + reference, "shrinking", **options)
    assert row["result"] == "holds"  # .9 - .6 = .3 shrinks to .9 - .8 = .1
    assert (
        "fully_informed − Average, from 2 classes to k_classes(8): 0.3000 → 0.1000"
        in row["evidence"]
    )


@pytest.mark.parametrize(
    ("test", "options", "message"),
    [
        ("grater", GREATER, "unknown test of claim c 'grater'; did you mean 'greater'"),
        ("greater", {"left": {}}, "claim c: key 'right' is missing: 'greater' compares two sides"),
        ("shrinking", GREATER, "claim c: key 'along' is missing"),
        ("best", GREATER, "should have one axis with a list of rivals for 'best'"),
        (
            "alike",
            {**GREATER, "margin": 0.02, "right": {"method": ["uwa"], "partition": ["sls"]}},
            "should have one axis with a list of rivals for 'alike'",
        ),
        ("alike", {"left": {"method": "uwa"}}, "margin = 0.0: should be above 0 for 'alike'"),
        ("greater", {**GREATER, "wher": {}}, "did you mean 'where'"),
        ("greater", {**GREATER, "where": {"datset": "mnist"}}, "did you mean 'dataset'"),
        (
            "greater",
            {**GREATER, "over": ["datset"]},
            "unknown axis 'datset'; did you mean",
        ),
        ("greater", {"left": {}, "right": {"method": "fedavg"}}, "several runs of one seed match"),
    ],
)
def test_a_malformed_claim_is_one_line(runs, judge, test, options, message):
    with pytest.raises(FedlogitError, match=message):
        judge(runs(0.6) + runs(0.7, method="uwa"), test, **options)


def test_markdown_shows_claim_result_and_rule(runs, make_artefact):
    claim = {
        "text": "UWA helps.",
        "section": "§4.4",
        "from": "table1",
        "test": "greater",
        "options": GREATER,
    }
    artefact = make_artefact(*runs(0.6), *runs(0.7, method="uwa"), claims={"c": claim})
    rows = judge_claims(artefact)
    text = claims_markdown(rows, [artefact])
    head, _, row = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:5]
    )
    assert dict(zip(head, row, strict=True)) == {
        "Claim": "UWA helps. (§4.4)",
        "Result": "holds",
        "Cell by cell": "holds",
        "Pooled": "holds",
        "As claimed, of those run": "1 of 1",
    }
    assert "- UWA vs Average: 0.7000 vs 0.6000 (n=3, 0.1000 [" in evidence_markdown(rows)
    assert "one-sided paired t test at 5 %" in text
    assert judge_claims(make_artefact(*runs(0.6))).empty


def test_numbers_on_an_axis_are_compared_as_numbers(judge, runs):
    """pandas makes 1.0 of the 1 beside a 0.5."""
    swept = [
        run
        for batch, (mean, decay) in enumerate(((0.8, 1), (0.5, 0.5), (0.4, 0)), start=1)
        for run in runs(mean, batch=batch, axes=AXES | {"decay": decay})
    ]
    said = judge(swept, "greater", left={"decay": 1}, right={"decay": 0.5})
    assert said["result"] == "holds"
    assert judge(swept, "greater", left={"decay": 0}, right={"decay": 0.5})["result"] != "holds"


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"method": "uwa", "rounds": 20}, "UWA, Rounds 20"),
        ({"method": "uwa", "rounds": 375}, "UWA, all rounds"),
        ({"method": "uwa", "method.probes_per_round": 16}, "UWA, probes per round 16"),
        ({"dataset": "mnist", "partition": "k_classes(2)"}, "mnist, 2 classes"),
        ({"method": ["uwa", "average"]}, "UWA or Average"),
        ({"method": "uwa", "method.rule": "mean", "partition": "*"}, "UWA, mean"),
        ({"method": "uwa", "metric": "accuracy@10"}, "UWA, test accuracy after round 10"),
        ({"metric": "votes_lost"}, "votes lost"),
        ({}, ""),
    ],
)
def test_evidence_names_values_by_the_labels_of_the_paper(make_run, make_artefact, values, name):
    """A number of its own says nothing, nor does a usual value, whose label is empty."""
    labels = {"uwa": "UWA", "average": "Average", "k_classes(2)": "2 classes"}
    labels |= {"rounds": "Rounds", "rounds=375": "all rounds", "method.rule=mean": ""}
    assert naming_of(make_artefact(make_run(), labels=labels))(values) == name


def test_rivals_that_share_a_label_are_two(runs, judge):
    """Each must be beaten, whatever it is called."""
    rivals = ["uwa(x=1)", "uwa(x=2)"]
    found = runs(0.65) + runs(0.6, method=rivals[0]) + runs(0.7, method=rivals[1])
    row = judge(
        found,
        "best",
        labels=dict.fromkeys(rivals, "UWA"),
        left={"method": "average"},
        right={"method": rivals},
    )
    assert (row["result"], row["run"]) == ("does not hold", "2 of 2")


def test_a_claim_says_what_its_data_stand_in_for(runs, judge, make_run):
    noted = [make_run(0.7, method="uwa", seed=seed, note="stand-in") for seed in range(3)]
    assert judge(runs(0.6) + noted, "greater", **GREATER)["data"] == "MNIST: stand-in"


def test_a_page_of_claims_says_whether_anything_was_run(make_run, make_artefact):
    rows = judge_claims(make_artefact(make_run()))
    others = claims_markdown(rows, [make_artefact(make_run())])
    assert "No run decides a claim." in others
    planned = [{"before": 0, "axes": AXES}]
    assert "Nothing was run." in claims_markdown(rows, [make_artefact(missing=planned)])
