from __future__ import annotations

import pytest

from fedlogit.errors import FedlogitError
from fedlogit.results.claims import claims_markdown, evidence_markdown, judge_claims

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
    def go(runs, test, **options):
        claim = {"text": "A claim.", "section": "§4.4", "test": test, "options": options}
        return judge_claims(make_artefact(*runs, claims={"c": claim})).iloc[0]

    return go


GREATER = {"left": {"method": "uwa"}, "right": {"method": "average"}}


def test_greater_holds(runs, judge):
    row = judge(runs(0.6) + runs(0.7, method="uwa"), "greater", **GREATER)
    assert row["result"] == "holds"
    assert row["agree"] == "1 of 1"
    assert row["evidence"] == "uwa vs average 0.7000 vs 0.6000 (n=3)"
    assert row["scale"] == "paper"


def test_greater_does_not_hold(runs, judge):
    row = judge(runs(0.7) + runs(0.6, method="uwa"), "greater", **GREATER)
    assert row["result"] == "does not hold"
    assert row["agree"] == "0 of 1"


def test_greater_within_noise_is_undecided(runs, judge):
    # Differences .01 + (-.04, 0, .04): noise 2.920 x .04 / sqrt(3) = .067 > .01.
    noisy = runs(0.61, spread=(0.02, 0.0, -0.02), method="uwa")
    assert judge(runs(0.6) + noisy, "greater", **GREATER)["result"] == "undecided"


def test_one_seed_is_undecided_but_shows_the_direction(runs, judge):
    pair = runs(0.6, spread=(0,)) + runs(0.9, spread=(0,), method="uwa")
    row = judge(pair, "greater", **GREATER)
    assert row["result"] == "undecided"
    assert row["agree"] == "1 of 1"
    assert row["evidence"] == "uwa vs average 0.9000 vs 0.6000 (n=1)"


def test_margin_may_demand_more_or_less(runs, judge):
    pair = runs(0.6) + runs(0.65, method="uwa")
    assert judge(pair, "greater", margin=0.1, **GREATER)["result"] == "does not hold"
    assert judge(pair, "greater", margin=0.04, **GREATER)["result"] == "holds"
    swapped = {"left": GREATER["right"], "right": GREATER["left"]}
    assert judge(pair, "greater", margin=-0.06, **swapped)["result"] == "holds"


def test_every_cell_must_hold(runs, judge):
    good = runs(0.6) + runs(0.7, method="uwa")
    bad = runs(0.9, dataset="cifar10") + runs(0.8, dataset="cifar10", method="uwa")
    row = judge(good + bad, "greater", over=["dataset"], **GREATER)
    assert row["result"] == "does not hold"
    assert row["agree"] == "1 of 2"
    assert "mnist: uwa vs average 0.7000 vs 0.6000 (n=3); cifar10: uwa" in row["evidence"]
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


def test_a_listed_cell_that_was_not_run_leaves_the_claim_undecided(runs, judge):
    pair = runs(0.6) + runs(0.7, method="uwa")
    where = {"dataset": ["mnist", "cifar10"]}
    row = judge(pair, "greater", where=where, over=["dataset"], **GREATER)
    assert row["result"] == "undecided"
    assert "cifar10: uwa vs average not run" in row["evidence"]


def test_nothing_run(runs, judge):
    assert judge(runs(0.6), "greater", **GREATER)["result"] == "not run"
    assert judge(runs(0.6), "greater", over=["dataset"], **GREATER)["result"] == "not run"


def test_a_diverged_run_leaves_the_claim_undecided(runs, make_run, judge):
    pair = runs(0.6)[:2] + runs(0.7, method="uwa")[:2]
    lost = [make_run(seed=2), make_run(seed=2, method="uwa", status="diverged")]
    assert judge(pair + lost, "greater", **GREATER)["result"] == "undecided"


def test_sides_may_compare_metrics_of_the_same_runs(make_run, judge):
    curves = [make_run([0.1, 0.69 + s, 0.7 + s], seed=i) for i, s in enumerate((0.0, 0.1, 0.2))]
    side = {"method": "average"}
    early = {"left": {**side, "metric": "accuracy@2"}, "right": side}
    assert judge(curves, "greater", margin=-0.02, **early)["result"] == "holds"
    assert judge(curves, "greater", margin=-0.005, **early)["result"] == "does not hold"


def test_a_metric_that_the_scale_is_too_short_for_is_not_run(runs, judge):
    side = {"method": "average"}
    row = judge(runs(0.6), "greater", left={**side, "metric": "accuracy@10"}, right=side)
    assert (row["result"], row["agree"]) == ("not run", "0 of 0")


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


def _gaps(runs, first: float, last: float) -> list:
    few, many = "k_classes(2)", "k_classes(8)"
    return [
        *runs(0.6, partition=few),
        *runs(0.6 + first, partition=few, method="uwa"),
        *runs(0.8, partition=many),
        *runs(0.8 + last, partition=many, method="uwa"),
    ]


SHRINKING = {**GREATER, "along": "partition"}


# |gap| from .13 to .005 although the sign changes; and the other way round.
def test_shrinking_holds_for_the_size_of_the_gap(runs, judge):
    row = judge(_gaps(runs, 0.13, -0.005), "shrinking", **SHRINKING)
    assert row["result"] == "holds"
    assert "from k_classes(2) to k_classes(8): 0.1300 → 0.0050 (n=3)" in row["evidence"]


def test_shrinking_does_not_hold(runs, judge):
    assert judge(_gaps(runs, 0.005, 0.13), "shrinking", **SHRINKING)["result"] == "does not hold"


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
    assert "0.3000 → 0.1000" in row["evidence"]


@pytest.mark.parametrize(
    ("test", "options", "message"),
    [
        ("grater", GREATER, "unknown test of claim c 'grater'; did you mean 'greater'"),
        ("greater", {"left": {}}, "claim c: test 'greater' needs 'right'"),
        ("shrinking", GREATER, "needs 'along'"),
        ("best", GREATER, "one axis with a list of rivals"),
        ("greater", {**GREATER, "wher": {}}, "did you mean 'where'"),
        ("greater", {**GREATER, "where": {"datset": "mnist"}}, "did you mean 'dataset'"),
        ("greater", {"left": {}, "right": {}}, "several runs of one seed match"),
    ],
)
def test_a_malformed_claim_is_one_line(runs, judge, test, options, message):
    with pytest.raises(FedlogitError, match=message):
        judge(runs(0.6) + runs(0.7, method="uwa"), test, **options)


def test_markdown_shows_claim_result_and_rule(runs, make_artefact):
    claim = {"text": "UWA helps.", "section": "§4.4", "test": "greater", "options": GREATER}
    artefact = make_artefact(*runs(0.6), *runs(0.7, method="uwa"), claims={"c": claim})
    rows = judge_claims(artefact)
    text = claims_markdown(rows, [artefact])
    assert "| UWA helps. (§4.4) | holds    | 1 of 1" in text
    assert "- uwa vs average 0.7000 vs 0.6000 (n=3)" in evidence_markdown(rows)
    assert "one-sided paired t test at 5 %" in text
    assert judge_claims(make_artefact(*runs(0.6))).empty
