"""FedAvg's shards of the data sorted by class (McMahan et al. 2017)."""

import numpy as np
import pytest

from fedlogit.partition import get, make_split

# Training images of each MNIST digit.
MNIST = np.repeat(np.arange(10), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])


def test_the_papers_mnist_has_200_shards_of_300():
    split = make_split(MNIST, 10, "shards", 100, 0)
    assert (split.counts.sum(axis=1) == 600).all()
    assert split.counts.sum(axis=0).tolist() == np.bincount(MNIST).tolist()
    # Nine borders between digits, none at a multiple of 300: nine shards of two digits, and a
    # client with two of those has at most four. 191 shards have one digit.
    held = (split.counts > 0).sum(axis=1)
    assert held.max() <= 4
    assert (held <= 2).sum() >= 91


def test_shards_of_one_class_each_are_dealt_whole():
    # 10 classes of 40 in 20 shards of 20: two of each class.
    labels = np.tile(np.arange(10), 40)
    for seed in range(20):
        counts = make_split(labels, 10, "shards(4)", 5, seed).counts
        assert np.isin(counts, [0, 20, 40]).all()
        assert (counts.sum(axis=1) == 80).all()
        assert (counts.sum(axis=0) == 40).all()


def test_both_shards_are_of_one_class_as_often_as_chance_says():
    # Four shards, two of each class: the second of client 0 is one of three, one of them the same.
    labels = np.repeat([0, 1], 10)
    same = [
        make_split(labels, 2, "shards", 2, seed).counts[0].tolist() != [5, 5] for seed in range(900)
    ]
    assert np.mean(same) == pytest.approx(1 / 3, abs=0.06)  # four deviations of .0157


def test_a_remainder_makes_shards_longer_by_one_and_loses_nothing():
    # 11 samples in 4 shards: 3, 3, 3 and 2; two of them make 6 and 5.
    parts = get("shards").split(np.array([0] * 6 + [1] * 5), 2, 2, 0)
    assert sorted(map(len, parts)) == [5, 6]
    assert sorted(np.concatenate(parts).tolist()) == [*range(11)]
    # Three shards of 4, 4 and 3: the border between classes lies in the second.
    counts = make_split(np.array([0] * 6 + [1] * 5), 2, "shards(1)", 3, 0).counts
    assert sorted(counts.tolist()) == [[0, 3], [2, 2], [4, 0]]


def test_a_shard_is_a_random_sample_of_its_class():
    # Two shards of class 0, of 50 each: of the first 50 samples in the file, a shard has about
    # half, with deviation 2.5; a sort alone would give one of them all.
    labels = np.repeat([0, 1], 100)
    for seed in range(10):
        for part in get("shards(1)").split(labels, 4, 2, seed):
            if labels[part[0]] == 0:
                assert 10 < (part < 50).sum() < 40
