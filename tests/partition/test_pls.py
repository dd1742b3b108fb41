"""CELM's pure label skew, whose counts the public code fixes sample by sample."""

import numpy as np
import pytest

from fedlogit.partition import distances, make_split

FMNIST = np.repeat(np.arange(10), 6000)
CIFAR10 = np.repeat(np.arange(10), 5000)
EMNIST = np.repeat(np.arange(47), 2400)

# Counts that the public code of CELM's author gives for Fashion-MNIST at seed 42.
ROWS = [
    {1: 3000, 8: 3000},
    {4: 2008, 6: 1996, 7: 1996},
    {1: 1521, 3: 1494, 4: 1484, 8: 1501},
    {2: 1198, 3: 1196, 4: 1207, 6: 1203, 7: 1196},
    {0: 663, 1: 666, 2: 668, 3: 663, 5: 665, 6: 662, 7: 665, 8: 675, 9: 673},
]


def test_fashion_mnist_at_seed_42_row_by_row():
    counts = make_split(FMNIST, 10, "pls(2, 3000, 100)", 5, 42).counts
    assert [{k: n for k, n in enumerate(row) if n} for row in counts.tolist()] == ROWS
    found = distances(counts)
    assert round(found["jsd"], 4) == 0.5081
    assert round(found["emd"], 4) == 0.0770
    assert round(found["hellinger"], 4) == 0.5860


@pytest.mark.parametrize(
    ("labels", "call", "seed", "classes_held", "size"),
    [
        (FMNIST, "pls(2, 3000, 100)", 41, [2, 3, 4, 5, 9], 6000),
        (FMNIST, "pls(2, 3000, 100)", 43, [2, 3, 4, 5, 10], 6000),
        (CIFAR10, "pls(2, 2000, 100)", 41, [2, 3, 4, 5, 9], 4000),
        (CIFAR10, "pls(2, 2000, 100)", 42, [2, 3, 4, 5, 9], 4000),
        (EMNIST, "pls(10, 2000, 100)", 42, [10, 15, 21, 26, 28], 11_740),
    ],
)
def test_class_counts_and_sizes(labels, call, seed, classes_held, size):
    counts = make_split(labels, labels.max() + 1, call, 5, seed).counts
    assert (counts > 0).sum(axis=1).tolist() == classes_held
    assert counts.sum(axis=1).tolist() == [size] * 5


def test_notes_tell_lost_classes_and_unused_samples():
    notes = make_split(EMNIST, 47, "pls(10, 2000, 100)", 5, 43).notes
    assert any("no client holds class" in note and "(1 lost)" in note for note in notes)
    assert any("of 112800 samples" in note for note in notes)


def test_a_tiny_case_by_hand():
    # One class of 9, one client, m0 = 1, s_max = 4, s_min = 2: quota 2 + 1 * ((4 - 2) // 1) = 4.
    split = make_split(np.zeros(9, int), 1, "pls(1, 4, 2)", 1, 0)
    assert split.counts.tolist() == [[4]]


def test_a_class_with_just_the_least_left_is_taken_from():
    assert make_split(np.zeros(2, int), 1, "pls(1, 4, 2)", 1, 0).counts.tolist() == [[2]]


def test_a_client_stops_above_what_the_first_may_hold_and_not_at_it():
    # Quotas 2 + (2 - i) * 1 are 4 and 3. The first takes 3 classes, 12 samples; the second holds 12
    # after four classes, which is not more than m0 * s_max = 12, and so it takes from a fifth.
    counts = make_split(np.repeat(np.arange(5), 20), 5, "pls(3, 4, 2)", 2, 0).counts
    assert (counts > 0).sum(axis=1).tolist() == [3, 5]
    assert counts.sum(axis=1).tolist() == [12, 12]
