from __future__ import annotations

import math

import numpy as np
import pytest

from fedlogit.results.verdict import decide, standard_error, verdict


@pytest.mark.parametrize(
    ("difference", "error", "expected"),
    [
        (0.9554 - 0.9454, 0.0, "reproduced"),  # 0.01 and a rounding error
        (-0.01, 0.0, "reproduced"),
        (0.0101, 0.0, "partly reproduced"),
        (0.0101, 0.0051, "reproduced"),  # 2 x .0051 = .0102
        (-0.03, 0.0, "partly reproduced"),
        (0.0301, 0.0, "not reproduced"),
        (0.05, 0.02, "partly reproduced"),  # 2 x .02 = .04 < .05 <= 3 x .02 = .06
        (0.07, 0.02, "not reproduced"),
    ],
)
def test_verdict(difference, error, expected):
    assert verdict(difference, error) == expected


def test_tolerance_is_relative_for_quantities_with_a_unit():
    # 1 % of 200,000 is 2,000; 3 % is 6,000.
    assert verdict(2000, 0, unit=200_000) == "reproduced"
    assert verdict(-2001, 0, unit=200_000) == "partly reproduced"
    assert verdict(6001, 0, unit=200_000) == "not reproduced"


def test_standard_error():
    assert standard_error(0.06, 9) == pytest.approx(0.02)
    assert standard_error(math.nan, 1) == 0


# Three seeds: t(0.95, 2) = 2.920. Differences .1, .2, .3 have s = .1, so the noise is
# 2.920 x .1 / sqrt(3) = .1686, and the mean .2 exceeds 0 by more but .05 by less than that.
@pytest.mark.parametrize(
    ("differences", "margin", "expected"),
    [
        ([0.1, 0.2, 0.3], 0.0, "holds"),
        ([0.1, 0.2, 0.3], 0.0313, "holds"),  # .2 - .0313 = .1687
        ([0.1, 0.2, 0.3], 0.0315, "undecided"),
        ([-0.1, -0.2, -0.3], 0.0, "does not hold"),
        ([-0.1, -0.2, -0.3], -0.5, "holds"),
        ([0.1, 0.1], 0.0, "holds"),
        ([0.0, 0.0, 0.0], 0.0, "undecided"),
        ([0.9], 0.0, "undecided"),
        ([0.9, math.nan, 0.9], 0.0, "undecided"),
        ([], 0.0, "not run"),
    ],
)
def test_decide(differences, margin, expected):
    assert decide(np.array(differences), margin) == expected
