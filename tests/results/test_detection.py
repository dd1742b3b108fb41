"""Free-rider detection with numbers worked out by hand."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fedlogit.results.metrics.detection import THRESHOLDS, auroc, false_positive_rate, z_scores


def test_z_scores_use_the_population_s_spread():
    # 1, 2, 3: mean 2, population std sqrt(2/3)
    assert z_scores(np.array([[1.0, 2.0, 3.0]]))[0] == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])
    assert z_scores(np.full((1, 3), 1 / 3)).tolist() == [[0, 0, 0]], "no spread, nobody stands out"


def test_each_round_has_a_mean_and_a_spread_of_its_own():
    # As contributions that are no shares have: 1, 3 and 10, 30 are one deviation from their means.
    found = z_scores(np.array([[1.0, 3.0], [10.0, 30.0]]))
    assert found.tolist() == [[-1, 1], [-1, 1]]


def test_a_spread_of_rounding_is_none():
    # -d and d have a population std of d.
    assert z_scores(np.array([[-1.02e-9, 1.02e-9]]))[0] == pytest.approx([-1, 1])
    assert z_scores(np.array([[-1e-9, 1e-9]])).tolist() == [[0, 0]]
    assert z_scores(np.array([[-0.98e-9, 0.98e-9]])).tolist() == [[0, 0]]


def test_auroc_counts_honest_clients_above_the_rider():
    # Round 1: the rider (last) is below both; round 2: between them; round 3: equal to both.
    rounds = np.array([[0.4, 0.4, 0.2], [0.1, 0.6, 0.3], [1 / 3] * 3])
    assert auroc(rounds[:1], [2]) == 1
    assert auroc(rounds[1:2], [2]) == 0.5
    assert auroc(rounds, [2]) == pytest.approx((1 + 0.5 + 0.5) / 3)


def test_auroc_is_scikit_learn_s_of_each_round():
    # Rounded, so that some are equal.
    contributions = np.random.default_rng(0).normal(size=(40, 7)).round(1)
    rider = np.isin(np.arange(7), [2, 5])
    of_rounds = [roc_auc_score(rider, -row) for row in contributions]
    assert auroc(contributions, [2, 5]) == pytest.approx(np.mean(of_rounds), rel=1e-12)


def test_riders_are_compared_with_honest_clients_only():
    # Riders 0 and 3 hold .1 and .5; honest .2 and .4: .1 is below both, .5 below none.
    contributions = np.array([[0.1, 0.2, 0.4, 0.5]])
    assert auroc(contributions, [0, 3]) == 0.5
    # z = (-1.26, -.63, .63, 1.26): of the honest, one of two is below -.6, none below -.7.
    rates = dict(zip(THRESHOLDS.tolist(), false_positive_rate(contributions, [0, 3]), strict=True))
    assert (rates[-0.7], rates[-0.6]) == (0, 0.5)


def test_false_positives_are_honest_clients_below_the_threshold():
    # z of (1, 2, 3, 6): mean 3, std sqrt(14/4) = 1.871: -1.069, -.535, 0, 1.604; the last is honest
    # too, the rider is client 0. Below -0.5: client 1, one of three honest ones. Below 0: client 1.
    contributions = np.array([[1.0, 2.0, 3.0, 6.0]])
    rates = dict(
        zip(THRESHOLDS.tolist(), false_positive_rate(contributions, [0]).tolist(), strict=True)
    )
    assert rates[-0.6] == 0
    assert rates[-0.5] == pytest.approx(1 / 3)
    assert rates[0.0] == pytest.approx(1 / 3), "a threshold is strict: z = 0 is not below 0"


def test_thresholds_are_those_documented():
    assert THRESHOLDS[0] == -2.0
    assert THRESHOLDS[-1] == 0.0
    assert len(THRESHOLDS) == 21
    assert THRESHOLDS[[5, 13]].tolist() == [-1.5, -0.7]
