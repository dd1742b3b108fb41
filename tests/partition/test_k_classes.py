"""The overlapping private sets of Who to Trust."""

import numpy as np
import pytest

from fedlogit.partition import get, make_split
from fedlogit.spec import Public

CIFAR10 = np.repeat(np.arange(10), 5000)
# Training images of each MNIST digit; digit 5 is the rarest.
MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST = np.repeat(np.arange(10), MNIST_COUNTS)


@pytest.mark.parametrize("k", [2, 5, 8])
@pytest.mark.parametrize("sets", ["random", "balanced"])
def test_twenty_clients_with_k_classes_cover_everything(k, sets):
    call = f"k_classes({k}, class_sets={sets!r})"
    for seed in range(3):
        counts = make_split(MNIST, 10, call, 20, seed).counts
        assert ((counts > 0).sum(axis=1) == k).all()
        assert (counts.sum(axis=1) == 10_000).all()
        assert (counts[counts > 0] == 10_000 // k).all()
        owners = (counts > 0).sum(axis=0)
        assert owners.min() >= 1
        if sets == "balanced":
            assert (owners == 20 * k // 10).all()


def test_cifar_10_with_a_disjoint_public_set_leaves_9000():
    # 500 of each class are public; k = 2 wants 5,000 of each, and 4,500 are left.
    split = make_split(CIFAR10, 10, "k_classes(2)", 20, 0, public=Public(size=5000))
    assert (split.counts.sum(axis=1) == 9000).all()
    assert len(split.notes) == 1
    assert "20 of 20 clients hold fewer than private_size = 10000" in split.notes[0]
    assert not np.isin(np.concatenate(split.clients), split.public).any()


def test_cifar_10_with_an_overlapping_public_set_has_10000():
    split = make_split(CIFAR10, 10, "k_classes(2)", 20, 0, public=Public(size=5000, overlap=True))
    assert (split.counts.sum(axis=1) == 10_000).all()
    assert split.notes == ()


def test_mnist_lacks_only_digit_5():
    # 5,421 - 500 public = 4,921 < 5,000; the next rarest, 5,842 - 500, suffices.
    counts = make_split(MNIST, 10, "k_classes(2)", 20, 0, public=Public(size=5000)).counts
    has_five = counts[:, 5] > 0
    assert has_five.any()
    assert (counts[has_five, 5] == 4921).all()
    assert (counts[has_five].sum(axis=1) == 9921).all()
    assert (counts[~has_five].sum(axis=1) == 10_000).all()


def test_random_sets_cover_all_classes_even_with_no_room_to_spare():
    labels = np.repeat(np.arange(10), 20)
    for seed in range(50):
        counts = make_split(labels, 10, "k_classes(2, private_size=10)", 5, seed).counts
        assert ((counts > 0).sum(axis=0) == 1).all()
        assert ((counts > 0).sum(axis=1) == 2).all()


def test_without_room_the_lost_classes_are_noted():
    labels = np.repeat(np.arange(10), 20)
    split = make_split(labels, 10, "k_classes(2, private_size=10)", 4, 0)
    assert ((split.counts > 0).sum(axis=0) <= 1).all()
    assert any("(2 lost)" in note for note in split.notes)  # 10 classes, 4 × 2 places


def test_clients_with_fewer_samples_than_private_size_are_counted():
    labels, parts = np.zeros(20, int), [np.arange(10), np.arange(10, 14), np.arange(14, 20)]
    *_, note = get("k_classes(1, private_size=10)").notes(labels, parts)
    assert "2 of 3 clients hold fewer than private_size = 10 samples (the smallest 4)" in note


def test_a_remainder_goes_to_the_first_classes():
    counts = make_split(
        np.repeat(np.arange(3), 20), 3, "k_classes(3, private_size=11)", 2, 0
    ).counts
    assert counts.tolist() == [[4, 4, 3], [4, 4, 3]]


def test_clients_draw_independently():
    first, second = get("k_classes(1, private_size=50)").split(np.zeros(100, int), 2, 1, 0)
    # Two independent halves of 100 share 25 on average, with deviation 2.5.
    assert 10 < len(np.intersect1d(first, second)) < 40
