"""NIID-Bench's quantity skew."""

import numpy as np
import pytest
from support.refusals import refused

from fedlogit.partition import get, make_split

LABELS = np.repeat(np.arange(10), 1000)


@pytest.mark.parametrize("beta", [0.5, 1.0, 10.0])
def test_everything_is_dealt_and_nobody_has_fewer_than_min_size(beta):
    for seed in range(5):
        parts = get(f"quantity({beta})").split(LABELS, 10, 10, seed)
        assert sorted(np.concatenate(parts).tolist()) == [*range(10_000)]
        assert min(map(len, parts)) >= 10


def test_min_size_is_kept_and_can_be_met_exactly():
    # At beta = 1 all five shares exceed a tenth in (1 - 5 / 10) ** 4, one of sixteen draws.
    for seed in range(10):
        parts = get("quantity(1.0, min_size=1000)").split(LABELS, 5, 10, seed)
        assert min(map(len, parts)) >= 1000
    # 10 of 20 samples each is all that there is.
    assert [len(p) for p in get("quantity(50.0)").split(np.zeros(20, int), 2, 1, 1)] == [10, 10]


def test_shares_deviate_as_a_dirichlet_does():
    # Var q_i = (1/N)(1 - 1/N) / (N beta + 1) = 0.2 * 0.8 / 6 = 0.02667 for five clients, beta 1.
    shares = np.array(
        [
            [len(p) / 10_000 for p in get("quantity(1.0, min_size=1)").split(LABELS, 5, 10, seed)]
            for seed in range(500)
        ]
    )
    assert shares.mean(axis=0) == pytest.approx(np.full(5, 0.2), abs=0.03)
    assert shares.var() == pytest.approx(0.16 / 6, rel=0.1)


def test_labels_are_alike():
    # Samples of each class at a client: about a tenth, with deviation sqrt(.09 / n) of the share.
    counts = make_split(LABELS, 10, "quantity(0.5)", 10, 0).counts
    sizes = counts.sum(axis=1, keepdims=True)
    assert sizes.max() > 10 * sizes.min()
    assert (np.abs(counts / sizes - 0.1) < 4.5 * np.sqrt(0.09 / sizes)).all()


def test_a_text_can_be_divided_too():
    sizes = [len(p) for p in get("quantity(0.5)").split(np.zeros(1000, int), 4, 1, 3)]
    assert sum(sizes) == 1000
    assert len(set(sizes)) == 4


def test_what_cannot_be_drawn_names_the_parameter_to_raise():
    with refused("use a larger beta, a smaller min_size or fewer clients"):
        get("quantity(0.001, min_size=100)").split(LABELS, 10, 10, 0)
