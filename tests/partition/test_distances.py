"""Distances between joint client-class distributions, each derived by hand."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance_nd

from fedlogit.errors import FedlogitError
from fedlogit.partition import distances


def test_identical_matrices_are_at_distance_zero_whatever_their_scale():
    counts = np.array([[1, 2], [3, 4]])
    assert distances(counts, counts * 10) == pytest.approx(
        {"jsd": 0, "emd": 0, "emd_direct": 0, "hellinger": 0}, abs=1e-7
    )


def test_disjoint_matrices_are_at_the_largest_distance():
    found = distances(np.array([[5, 0]]), np.array([[0, 2]]))
    # p = (1, 0), q = (0, 1), m = (½, ½): JS divergence ln 2; no overlap; rows at distance √2.
    assert found["jsd"] == pytest.approx(np.sqrt(np.log(2)))
    assert found["hellinger"] == pytest.approx(1)
    assert found["emd"] == pytest.approx(np.sqrt(2))


def test_one_class_per_client_against_uniform():
    found = distances(np.diag([3, 3]))
    # p = (½, 0, 0, ½), q = ¼ each.
    # Hellinger: sum sqrt(pq) = 2 * sqrt(1/8) = 1/√2.
    assert found["hellinger"] == pytest.approx(np.sqrt(1 - 1 / np.sqrt(2)))
    # m = (3/8, 1/8, 1/8, 3/8): KL(p|m) = ln(4/3), KL(q|m) = ½ ln(2/3) + ½ ln 2 = ½ ln(4/3).
    assert found["jsd"] == pytest.approx(np.sqrt(0.75 * np.log(4 / 3)))
    # Each row differs from (¼, ¼) by (¼, -¼).
    assert found["emd"] == pytest.approx(np.sqrt(2) / 4)
    assert found["emd_direct"] == pytest.approx(np.sqrt(2) / 4)


def test_emd_matches_rows_and_emd_direct_does_not():
    counts = np.array([[1, 0], [0, 1]])
    found = distances(counts, counts[::-1])
    assert found["emd"] == pytest.approx(0)
    # Rows (½, 0) against (0, ½): √½.
    assert found["emd_direct"] == pytest.approx(np.sqrt(0.5))


def test_emd_is_scipys_wasserstein_distance_of_the_rows():
    generator = np.random.default_rng(0)
    p, q = generator.random((4, 3)), generator.random((4, 3))
    expected = wasserstein_distance_nd(p / p.sum(), q / q.sum())
    assert distances(p, q)["emd"] == pytest.approx(expected)


def test_clients_are_weighted_by_their_size():
    # Not an average over clients: 100 samples of class 0 outweigh 1 of class 1.
    lopsided = distances(np.array([[100, 0], [0, 1]]))
    even = distances(np.array([[100, 0], [0, 100]]))
    assert lopsided["jsd"] > even["jsd"]


@pytest.mark.parametrize(
    "counts",
    [np.zeros((2, 2)), np.array([1, 2]), np.array([[1, -1]]), np.array([[1, np.nan]])],
)
def test_what_is_not_a_distribution_is_refused(counts):
    with pytest.raises(FedlogitError, match="clients × classes matrix"):
        distances(counts)


def test_shapes_must_agree():
    with pytest.raises(FedlogitError, match=r"shapes \(1, 2\) and \(2, 1\)"):
        distances(np.ones((1, 2)), np.ones((2, 1)))


def test_rounding_below_zero_is_no_distance():
    # Multiples of one matrix: of 500, rounding brings the divergence of some below 0.
    random = np.random.default_rng(0)
    for _ in range(500):
        counts = random.random((5, 10))
        found = distances(counts, counts * random.random())
        assert found["jsd"] == pytest.approx(0, abs=1e-7)
