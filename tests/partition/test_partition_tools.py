"""What several partitions share, by hand."""

import numpy as np
import pytest

from fedlogit.partition.roles import class_order, free_rider_samples, iid_parts
from fedlogit.partition.tools import balanced_sets, by_class, class_counts, cut_points
from fedlogit.rng import rng


def test_classes_without_samples_have_empty_pools():
    pools = by_class(np.array([1, 0, 1]), 4)
    assert [pool.tolist() for pool in pools] == [[1], [0, 2], [], []]


def test_cuts_round_down_and_the_last_piece_takes_the_rest():
    # 0.5 and 0.8 of 7 samples are 3.5 and 5.6.
    assert cut_points(np.array([0.5, 0.3, 0.2]), 7).tolist() == [3, 5]


def test_class_counts_rise_by_equal_steps():
    # (10 - 2) // (4 - 1) = 2; a client alone stays at the first count.
    assert class_counts(2, 10, 4) == [2, 4, 6, 8]
    assert class_counts(2, 10, 1) == [2]


@pytest.mark.parametrize("seed", range(3))
def test_owners_of_two_classes_differ_by_one_at_most(seed):
    sets = balanced_sets(5, 3, 7, np.random.default_rng(seed))
    owners = np.bincount(np.concatenate(sets), minlength=7)
    assert all(len(set(chosen.tolist())) == 3 for chosen in sets)
    assert (owners.sum(), owners.min(), owners.max()) == (15, 2, 3)


def test_order_rider_and_the_rest_are_drawn_apart():
    # Each has a stream of its own, so one setting's rider is another's.
    order = class_order(10, 4)
    assert order.tolist() == rng(4, "partition", 0).permutation(10).tolist()
    labels = np.repeat(np.arange(10), 20)
    few = rng(4, "partition", 1).choice(np.arange(100, 120), 6, replace=False)
    assert free_rider_samples(labels, np.array([5]), 6, 4).tolist() == few.tolist()
    mixed = rng(4, "partition", 2).permutation(labels)
    assert np.concatenate(iid_parts(labels, 3, 4)).tolist() == mixed.tolist()


def test_rare_classes_are_last_in_the_order():
    order = class_order(10, 4, rare=3, chosen="last")
    assert order[-3:].tolist() == [7, 8, 9]
    drawn = class_order(10, 4).tolist()
    assert order[:-3].tolist() == [c for c in drawn if c < 7]


def test_a_rider_takes_one_more_of_the_first_classes_and_no_sample_twice():
    labels = np.repeat(np.arange(3), 5)
    drawn = free_rider_samples(labels, np.array([2, 0, 1]), 8, 0)
    assert np.bincount(labels[drawn]).tolist() == [3, 2, 3]  # 8 = 3 + 3 + 2, in the order 2, 0, 1
    assert len(set(drawn.tolist())) == 8
    assert len(free_rider_samples(labels, np.array([0]), 100, 0)) == 5  # a class has no more
