"""Step label skew: CELM's nested form, with a fixed order, and the random one of public code."""

import numpy as np
import pytest

from fedlogit.partition import distances, make_split

CIFAR10 = np.repeat(np.arange(10), 5000)
EMNIST = np.repeat(np.arange(47), 2400)


def test_cifar_10_totals_and_distances_of_celm_table_4():
    # Client 2 owns 2 classes with 5 owners, 2 with 4 and 2 with 3: 2*1000 + 2*1250 + 2*5000/3
    # = 7833.3. Thirds of 5,000 are 1667, 1667, 1666, so clients 2-4 are off by up to 2.
    exact = [2000, 4500, 7833 + 1 / 3, 12833 + 1 / 3, 22833 + 1 / 3]
    counts = make_split(CIFAR10, 10, "sls(2)", 5, 42).counts
    assert counts.sum(axis=1) == pytest.approx(exact, abs=1.5)
    assert counts.sum() == 50_000
    found = distances(counts)
    assert round(found["jsd"], 4) == 0.4327
    assert round(found["emd"], 4) == 0.0656
    assert round(found["hellinger"], 4) == 0.5003


def test_class_sets_are_nested_and_grow_by_steps():
    held = make_split(CIFAR10, 10, "sls", 5, 7).counts > 0
    assert held.sum(axis=1).tolist() == [2, 4, 6, 8, 10]
    assert all((held[i] <= held[i + 1]).all() for i in range(4))


def test_emnist_gives_the_47th_class_to_the_last_client():
    # Steps of (47 - 10) // 4 = 9: 10, 19, 28, 37, 46; one class is left.
    counts = make_split(EMNIST, 47, "sls(10)", 5, 0).counts
    assert (counts > 0).sum(axis=1).tolist() == [10, 19, 28, 37, 47]
    assert counts.sum() == len(EMNIST)


def test_the_class_order_depends_on_the_seed():
    first, other = (make_split(CIFAR10, 10, "sls", 5, seed).counts for seed in (0, 1))
    assert not np.array_equal(first > 0, other > 0)


def test_a_fixed_order_is_that_of_the_class_numbers_whatever_the_seed():
    # Classes 0 and 1 have 5 owners, 2 and 3 have 4, ..., 8 and 9 one: 5000 / owners each.
    for seed in (0, 1):
        counts = make_split(CIFAR10, 10, "sls_fixed", 5, seed).counts
        for k in range(10):
            owners = 5 - k // 2
            assert counts[:, k] == pytest.approx(
                [5000 / owners if i >= k // 2 else 0 for i in range(5)], abs=1
            )
    assert round(distances(counts)["jsd"], 4) == 0.4327


def test_random_label_sets_stay_below_table_4():
    labels = np.repeat(np.arange(10), 600)
    found = [distances(make_split(labels, 10, "sls_random", 5, s).counts) for s in range(100)]
    # .415 ± .005 and .484 ± .004 per draw: the mean of 100 is off by .0005.
    assert np.mean([d["jsd"] for d in found]) == pytest.approx(0.415, abs=0.002)
    assert np.mean([d["hellinger"] for d in found]) == pytest.approx(0.484, abs=0.002)
    assert max(d["jsd"] for d in found) < 0.4327
