"""The Dirichlet split of FedOL and TallyTrain."""

import numpy as np
import pytest

from fedlogit.partition import distances, get, make_split

CIFAR10 = np.repeat(np.arange(10), 5000)


@pytest.mark.parametrize("call", ["dir_class(0.05, balance=True)", "dir_class(0.5)"])
def test_everything_is_used_and_nobody_has_fewer_than_min_size(call):
    for seed in range(5):
        parts = get(call).split(CIFAR10, 10, 10, seed)
        assert sum(map(len, parts)) == 50_000
        assert min(map(len, parts)) >= 10


def test_min_size_is_kept():
    parts = get("dir_class(1.0, min_size=1000)").split(CIFAR10, 10, 10, 0)
    assert min(map(len, parts)) >= 1000


def test_balance_stops_clients_that_hold_their_share():
    # A client gets no class after reaching n / N = 5,000, so it holds less than 5,000 + one class.
    for seed in range(10):
        parts = get("dir_class(0.05, balance=True)").split(CIFAR10, 10, 10, seed)
        assert max(map(len, parts)) < 10_000
    largest = [max(map(len, get("dir_class(0.05)").split(CIFAR10, 10, 10, s))) for s in range(10)]
    assert max(largest) > 10_000


def test_who_holds_just_the_equal_share_gets_no_more():
    # At this alpha a class goes whole to one of two clients; after two of four it holds n / N.
    for seed in range(10):
        parts = get("dir_class(0.001, balance=True)").split(np.repeat(range(4), 10), 2, 4, seed)
        assert [len(part) for part in parts] == [20, 20]


def test_a_class_that_nobody_can_take_is_drawn_anew():
    # At this alpha a class goes whole to one of two clients, and with balance the second class to
    # the other: if its draw names the first, no share is left of it and all is drawn again.
    for seed in range(10):
        parts = get("dir_class(0.001, balance=True)").split(np.repeat([0, 1], 10), 2, 2, seed)
        assert sorted(part.tolist() for part in parts) == [[*range(10)], [*range(10, 20)]]


@pytest.mark.parametrize(
    ("alpha", "jsd", "hellinger"), [(0.05, 0.595, 0.670), (0.01, 0.637, 0.725)]
)
def test_mean_distances_over_seeds(alpha, jsd, hellinger):
    # The mean of 200 draws that deviate by about .02 each has an error of .0015.
    labels = np.repeat(np.arange(10), 500)
    found = [
        distances(make_split(labels, 10, f"dir_class({alpha}, min_size=1)", 5, seed).counts)
        for seed in range(200)
    ]
    assert np.mean([d["jsd"] for d in found]) == pytest.approx(jsd, abs=0.006)
    assert np.mean([d["hellinger"] for d in found]) == pytest.approx(hellinger, abs=0.006)
