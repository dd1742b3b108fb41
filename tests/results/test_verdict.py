"""Verdicts on numbers and claims, with intervals and p values worked out by hand.

Quantiles of Student's t are from tables: 95 % (for two-sided 90 % intervals, and one-sided tests)
with 1, 2, 4, 6 degrees of freedom: 6.314, 2.920, 2.132, 1.943; 97.5 % with 2, 4: 4.303, 2.776.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedlogit.results.statistics.means import (
    Sample,
    half_width,
    holm,
    interval,
    p_above,
    p_below,
    paired_interval,
    welch,
)
from fedlogit.results.verdicts.rules import (
    CLAIM_RESULTS,
    Verdict,
    decide,
    final_result,
    is_exact,
    largest_difference,
    margin_unit,
    verdict,
)

NAN = math.nan
# From worst to best: what is said, for an order.
WORST_TO_BEST = ["not reproduced", "inconclusive", "partly reproduced", "reproduced"]
stds = st.floats(0, 0.1)
counts = st.integers(2, 30)


# Welch, n = 5 and 3, s² = 10 and S² = 3: variances of the means are a = 10/5 = 2 and b = 3/3 = 1;
# degrees of freedom (2 + 1)² / (2²/4 + 1²/2) = 9 / 1.5 = 6; 1.943 √3 = 3.366. The means alone have
# 2.132 √2 = 3.015 and 2.920 √1 = 2.920.
def test_an_interval_is_welchs():
    found = half_width(Sample(0, math.sqrt(10), 5), Sample(0, math.sqrt(3), 3), 0.90)
    assert found == pytest.approx(3.366, abs=1e-3)
    equal = welch(Sample(0, 1, 3), Sample(0, 1, 3), 0.95)
    assert equal == pytest.approx(2.776 * math.sqrt(2 / 3), abs=1e-3)
    assert welch(Sample(0, 0, 3), Sample(0, 0, 3), 0.95) == 0


# n = 3 and 3, variances of the means 2 - √3 = .268 and 1: (1.268)² / (.268²/2 + 1/2) = 3 degrees of
# freedom, so Welch has 2.353 √1.268 = 2.650; the mean with 1 alone has 2.920.
def test_an_interval_is_not_narrower_than_that_of_either_mean_alone():
    small, large = Sample(0, math.sqrt(3 * (2 - math.sqrt(3))), 3), Sample(0, math.sqrt(3), 3)
    assert welch(small, large, 0.90) == pytest.approx(2.650, abs=1e-3)
    assert half_width(small, large, 0.90) == pytest.approx(2.920, abs=1e-3)
    assert half_width(large, small, 0.90) == pytest.approx(2.920, abs=1e-3)
    assert half_width(large, Sample(0, 0, 3), 0.90) == pytest.approx(2.920, abs=1e-3)
    assert half_width(Sample(0, 0, 3), large, 0.90) == pytest.approx(2.920, abs=1e-3)


@pytest.mark.parametrize(
    ("std", "n", "expected"),
    [
        (NAN, 3, 2.920 * math.sqrt(1 / 3 + 1 / 3)),  # as spread as ours, s = 1
        (NAN, 1, 2.920 * math.sqrt(1 / 3 + 1)),
        (NAN, NAN, 2.920 * math.sqrt(1 / 3 + 1)),  # a single run
        (2.0, NAN, 6.314 * math.sqrt(4 / 2)),  # two runs, whose interval alone is the wider
        (2.0, 1, 6.314 * math.sqrt(4 / 2)),  # one run has no ±
        (2.0, 2, 6.314 * math.sqrt(4 / 2)),
    ],
)
def test_what_a_paper_does_not_say_widens_the_interval(std, n, expected):
    assert half_width(Sample(0, 1, 3), Sample(0, std, n), 0.90) == pytest.approx(expected, abs=2e-3)


# s = S = .003, n = N = 3: standard error .003 √(2/3) = .0024495, 4 degrees of freedom: 90 % is
# ± 2.132 x .0024495 = .005222. 95 % is no narrower than that of either mean alone, which is
# ± 4.303 x .003/√3 = .007452. So the limits are .01 - .005222 = .004778, .03 - .005222 = .024778
# and .03 + .007452 = .037452.
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (0.0, "reproduced"),
        (0.00477, "reproduced"),
        (0.00479, "partly reproduced"),
        (0.02477, "partly reproduced"),
        (0.02479, "inconclusive"),
        (0.03744, "inconclusive"),
        (0.03747, "not reproduced"),
    ],
)
def test_a_verdict_compares_the_interval_with_one_and_three_points(difference, expected, sign):
    ours, theirs = Sample(0.5 + sign * difference, 0.003, 3), Sample(0.5, 0.003, 3)
    assert verdict(ours, theirs) == expected


@pytest.mark.parametrize(
    ("ours", "paper", "expected"),
    [
        (0.9554, 0.9454, "reproduced"),  # .01 and a rounding error
        (0.5101, 0.5, "partly reproduced"),
        (0.53, 0.5, "partly reproduced"),
        (0.5301, 0.5, "not reproduced"),
    ],
)
def test_intervals_without_width_may_touch_the_margin(ours, paper, expected):
    assert verdict(Sample(ours, 0.0, 3), Sample(paper, 0.0, 3)) == expected


def test_a_margin_belongs_to_what_is_within_it():
    for margin, expected in ((0.01, "reproduced"), (0.03, "partly reproduced")):
        assert verdict(Sample(margin + 1e-12, 0.0, 3), Sample(0.0, 0.0, 3)) == expected
        assert verdict(Sample(margin + 1e-12, 0.0, 3), Sample(0.0), exact=True) == expected
    assert verdict(Sample(0.03 + 1e-12, NAN, 1), Sample(0.0)) == "single run, within"


@pytest.mark.parametrize("std", [0.0, 0.001, 0.01, 0.03, 0.05, 0.1])
def test_noise_in_our_runs_makes_no_number_not_reproduced(std):
    """The paper's .15 ± .05 of three is ± .124 alone; Welch's would be ± .08 with ours at .05."""
    assert verdict(Sample(0.0, std, 3), Sample(0.15, 0.05, 3)) == "inconclusive"


# Two runs of the paper's with S = .01: 95 % is ± 12.706 x .01/√2 = .0898, so .1 is not surely off.
def test_two_runs_of_the_papers_are_known_to_scatter():
    assert verdict(Sample(0.1, 0.0, 3), Sample(0.0, 0.01, 2)) == "inconclusive"
    assert verdict(Sample(0.1199, 0.0, 3), Sample(0.0, 0.01, 2)) == "not reproduced"


# Ours have s = .003, n = 3. Exact, the paper's number would leave a 95 % interval of
# ± 4.303 x .003/√3 = .00745, so .03745 is "not reproduced" whatever the paper does not say.
# Without ±, n = 3: 90 % is ± 2.920 x .003 √(2/3) = .007153: limits .002847 and .022847.
# Without ± and n: ± 2.920 x .003 √(4/3) = .010115: never within .01; limit .019885.
# With ± .003 but no n: ± 6.314 x .003/√2 = .013394 for N = 2: never within .01; limit .016606.
@pytest.mark.parametrize(
    ("std", "n", "difference", "expected"),
    [
        (NAN, 3, 0.0028, "reproduced"),
        (NAN, 3, 0.0029, "partly reproduced"),
        (NAN, 3, 0.0228, "partly reproduced"),
        (NAN, 3, 0.0229, "inconclusive"),
        (NAN, NAN, 0.0, "partly reproduced"),
        (NAN, NAN, 0.0198, "partly reproduced"),
        (NAN, NAN, 0.0199, "inconclusive"),
        (0.003, NAN, 0.0, "partly reproduced"),
        (0.003, NAN, 0.0166, "partly reproduced"),
        (0.003, NAN, 0.0167, "inconclusive"),
        (NAN, 3, 0.0374, "inconclusive"),
        (NAN, 3, 0.0375, "not reproduced"),
        (NAN, NAN, 0.0374, "inconclusive"),
        (NAN, NAN, 0.0375, "not reproduced"),
        (0.003, NAN, 0.0374, "inconclusive"),
        (0.003, NAN, 0.0375, "not reproduced"),
        (0.003, 1, 0.0166, "partly reproduced"),  # a single run has no ±: as without n
        (0.003, 1, 0.0374, "inconclusive"),
        (0.003, 1, 0.0375, "not reproduced"),
    ],
)
def test_what_a_paper_does_not_say_does_not_flatter(std, n, difference, expected):
    assert verdict(Sample(difference, 0.003, 3), Sample(0.0, std, n)) == expected


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (0.0, "single run, within"),
        (-0.03, "single run, within"),
        (0.0301, "single run, outside"),
        (-0.5, "single run, outside"),
    ],
)
@pytest.mark.parametrize("theirs", [Sample(0.5, 0.2, 3), Sample(0.5), Sample(0.5, 0.0, 10)])
def test_a_single_run_never_reproduces_anything(difference, expected, theirs):
    assert verdict(Sample(0.5 + difference, NAN, 1), theirs) == expected


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (2.0, "reproduced"),
        (-2.01, "partly reproduced"),
        (6.0, "partly reproduced"),
        (6.01, "not reproduced"),
    ],
)
def test_margins_of_quantities_with_a_unit_are_relative(difference, expected):
    ours = Sample(200 + difference, 0.0, 3)
    assert verdict(ours, Sample(200.0), unit=200) == expected
    for n, std in ((1, NAN), (3, 0.0)):
        exact = Sample(200 + difference, std, n)
        assert verdict(exact, Sample(200.0), unit=200, exact=True) == expected


def test_what_margins_are_fractions_of():
    units = {("accuracy", 0.8): 1, ("perplexity", 25.0): 25, ("log_likelihood", -2.0): 2}
    assert {place: margin_unit(*place) for place in units} == units


def test_an_exact_quantity_needs_no_spread_of_the_papers():
    assert verdict(Sample(200.0, 0.0, 3), Sample(200.0, 50.0, 3), 200, exact=True) == "reproduced"
    assert verdict(Sample(200.0, 0.0, 3), Sample(200.0, 50.0, 3), 200) == "inconclusive"


def test_a_quantity_whose_runs_differ_is_not_exact():
    ours, theirs = Sample(0.5, 0.5, 3), Sample(0.5)
    assert verdict(ours, theirs, exact=True) == "inconclusive"
    assert interval(Sample(0.5, 0.0, 3), theirs, exact=True) == pytest.approx(
        (NAN,) * 2, nan_ok=True
    )
    # Where runs differ they have an interval all the same, of 2.920 x .1 √(1/3 + 1) about 0.
    shown = interval(Sample(0.5, 0.1, 3), theirs, exact=True)
    assert shown == pytest.approx((-0.33718, 0.33718), abs=1e-5)


# ± 2.920 x .003 √(2/3) = .007153 about .02.
def test_the_interval_shown_is_the_one_that_decides():
    found = interval(Sample(0.52, 0.003, 3), Sample(0.5, NAN, 3))
    assert found == pytest.approx((0.012847, 0.027153), abs=1e-6)
    assert all(math.isnan(end) for end in interval(Sample(0.52, NAN, 1), Sample(0.5, 0.1, 3)))
    assert interval(Sample(0.52, 0.0, 3), Sample(0.5, 0.0, 3)) == pytest.approx((0.02, 0.02))


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("bytes_up", True),
        ("bytes_per_probe", True),
        ("mebibytes_up", True),
        ("payload_star_gigabytes", True),
        ("reduction", True),
        ("jsd_uniform", True),
        ("emd_direct_uniform", True),
        ("jsd", False),
        ("accuracy", False),
        ("tail_fifth_perplexity", False),
        ("fpr", False),
    ],
)
def test_counted_bytes_and_distances_of_a_split_are_exact(metric, expected):
    assert is_exact(metric) == expected


# Of "not reproduced" a wider spread may make "inconclusive", which claims less.
@given(st.floats(-0.1, 0.1), stds, stds, st.one_of(stds, st.just(NAN)), counts, counts)
def test_a_wider_spread_of_ours_never_improves_a_verdict(difference, one, other, std, n, theirs):
    low, high = sorted((one, other))
    paper = Sample(0.5, std, theirs)
    said = [verdict(Sample(0.5 + difference, s, n), paper) for s in (low, high)]
    credit = [max(WORST_TO_BEST.index(text), 1) for text in said]
    assert credit[1] <= credit[0]
    widths = [half_width(Sample(0, s, n), paper, 0.90) for s in (low, high)]
    assert widths[1] >= widths[0] - 1e-12


# An exact number leaves ours the fewer degrees of freedom, so "not reproduced" may be unsure.
@example(0.09375, 0.015625, 0.03125, 2, 4)
@given(st.floats(-0.1, 0.1), stds, stds, counts, counts)
def test_a_paper_that_does_not_say_how_many_runs_never_improves_a_verdict(
    difference, std, paper_std, n, paper_n
):
    ours = Sample(0.5 + difference, std, n)
    said = [verdict(ours, Sample(0.5, paper_std, count)) for count in (paper_n, NAN)]
    credit = [max(WORST_TO_BEST.index(text), 1) for text in said]
    assert credit[1] <= credit[0]


@given(st.floats(-0.1, 0.1), st.one_of(stds, st.just(NAN)), st.one_of(counts, st.just(NAN)))
def test_a_single_run_is_never_called_reproduced(difference, std, n):
    found = verdict(Sample(0.5 + difference, NAN, 1), Sample(0.5, std, n))
    assert found in (Verdict.SINGLE_RUN_WITHIN, Verdict.SINGLE_RUN_OUTSIDE)


# With 2 degrees of freedom P(T > t) = (1 - t/√(t² + 2)) / 2. Differences .1, .2, .3 have s = .1 and
# t = .2 √3 / .1 = √12, so p = (1 - √(12/14)) / 2 = .03709.
def test_p_values():
    differences = np.array([0.1, 0.2, 0.3])
    assert p_above(differences) == pytest.approx(0.03709, abs=1e-5)
    assert p_below(differences) == pytest.approx(0.96291, abs=1e-5)
    assert p_above(-differences, -0.4) == pytest.approx(0.03709, abs=1e-5)  # .4 - .2 = .2
    assert p_below(-differences) == pytest.approx(0.03709, abs=1e-5)
    assert p_below(differences, 0.4) == pytest.approx(0.03709, abs=1e-5)


@pytest.mark.parametrize("differences", [[], [0.9], [0.9, NAN, 0.9], [0.9, math.inf, 0.9]])
def test_nothing_is_decided_by_one_seed_or_a_diverged_run(differences):
    assert (p_above(np.array(differences)), p_below(np.array(differences))) == (1.0, 1.0)
    assert decide([(np.array(differences), -5.0)]) == "undecided"
    assert decide([(np.array(differences), 5.0)]) == "undecided"


# Noise of one-sided 5 % with s = .1, n = 3: 2.920 x .1/√3 = .1686.
@pytest.mark.parametrize(
    ("differences", "margin", "expected"),
    [
        ([0.1, 0.2, 0.3], 0.0, "holds"),
        ([0.1, 0.2, 0.3], 0.0313, "holds"),  # .2 - .0313 = .1687
        ([0.1, 0.2, 0.3], 0.0315, "undecided"),
        ([-0.1, -0.2, -0.3], 0.0, "does not hold"),
        ([0.1, 0.2, 0.3], 0.3685, "undecided"),
        ([0.1, 0.2, 0.3], 0.3687, "does not hold"),
        ([-0.1, -0.2, -0.3], -0.5, "holds"),
        ([0.1, 0.1], 0.0, "holds"),
        ([0.7 - 0.6, 0.8 - 0.7, 0.1], 0.1, "undecided"),  # all .1 but for rounding
        ([0.1 + 1.0e-15, 0.1 + 1.1e-15, 0.1 + 1.2e-15], 0.1, "undecided"),  # so are these
        ([0.0, 0.0, 0.0], 0.0, "undecided"),
    ],
)
def test_decide(differences, margin, expected):
    assert decide([(np.array(differences), margin)]) == expected


# Sorted .01, .03, .04: .01 x 3, .03 x 2, and .04 x 1, which may not be below .06.
def test_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.2]) == pytest.approx([0.9, 0.4])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


# -1.8, -2.8, -3.8: t = -2.8 √3 = -4.850, p = (1 - 4.850/√25.52) / 2 = .0200; other cells are even.
@pytest.mark.parametrize(
    ("cells", "expected"),
    [(1, "does not hold"), (2, "does not hold"), (3, "undecided"), (16, "undecided")],
)
def test_a_failure_by_chance_among_many_cells_is_none(cells, expected):
    unlucky, even = np.array([-1.8, -2.8, -3.8]), np.array([-1.0, 0.0, 1.0])
    tests = [(unlucky, 0.0)] + [(even, 0.0)] * (cells - 1)
    assert decide(tests) == expected


# As above, but those that were not run count, too: they might have been the unlucky one.
def test_cells_that_were_not_run_count_among_the_many():
    unlucky, none = np.array([-1.8, -2.8, -3.8]), np.array([])
    assert decide([(unlucky, 0.0), (none, 0.0)]) == "does not hold"
    assert decide([(unlucky, 0.0), (none, 0.0), (none, 0.0)]) == "undecided"


def test_all_cells_must_hold_and_need_no_correction():
    good, even = np.array([0.1, 0.2, 0.3]), np.array([-1.0, 0.0, 1.0])
    assert decide([(good, 0.0)] * 16) == "holds"  # p = .037 each; .59 after Holm
    assert decide([(good, 0.0)] * 15 + [(even, 0.0)]) == "undecided"
    assert decide([]) == "undecided"


@pytest.mark.parametrize(
    ("cells", "pooled", "whole", "expected"),
    [
        ("holds", "holds", True, "holds"),
        ("holds", "undecided", True, "holds"),
        ("undecided", "holds", True, "holds on average"),
        ("undecided", "does not hold", True, "does not hold on average"),
        ("undecided", "undecided", True, "undecided"),
        ("does not hold", "holds", True, "does not hold"),
        ("does not hold", "undecided", False, "does not hold"),
        ("holds", "holds", False, "undecided"),
        ("undecided", "holds", False, "undecided"),
        ("undecided", "does not hold", False, "undecided"),
    ],
)
def test_the_final_word(cells, pooled, whole, expected):
    assert final_result(cells, pooled, whole=whole) == expected
    assert expected in CLAIM_RESULTS


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        (0.01, "no difference larger than 1 point"),
        (0.03, "no difference larger than 3 points"),
        (math.inf, "undecided"),
    ],
)
def test_nearness_speaks_last(within, expected):
    assert final_result("undecided", "undecided", whole=True, within=within) == expected
    assert expected in CLAIM_RESULTS
    assert final_result("undecided", "holds", whole=True, within=within) == "holds on average"
    assert final_result("holds", "holds", whole=True, within=within) == "holds"
    assert final_result("does not hold", "undecided", whole=True, within=within) == "does not hold"
    assert final_result("undecided", "undecided", whole=False, within=within) == "undecided"


# 90 % of 2 ± 1 with n = 3 is 2 ± 2.920 / √3 = 2 ± 1.686.
def test_intervals_of_paired_differences_and_the_margin_that_holds_all():
    assert paired_interval(np.array([1.0, 2.0, 3.0]), 0.9) == pytest.approx(
        (0.314, 3.686), abs=1e-3
    )
    assert all(math.isnan(end) for end in paired_interval(np.array([1.0]), 0.9))
    near, far = np.array([0.001, 0.002, 0.003]), np.array([-0.01, -0.02, -0.01])
    assert largest_difference([near]) == 0.01
    assert largest_difference([near, far]) == 0.03
    for worse in (10 * near + 0.02, np.array([0.0]), np.array([0.0, NAN, 0.0])):
        assert largest_difference([near, worse]) == math.inf
    assert largest_difference([]) == math.inf
    for margin in (0.01, 0.03):  # limits are inclusive, also where 0.65 - 0.64 is a little more
        assert largest_difference([np.array([0.64 + margin - 0.64] * 3), near]) == margin
