"""The splits that CELM's tables were made with, and the distribution they come from."""

import numpy as np
import pytest

from fedlogit.partition import distances, get, make_split
from fedlogit.partition.tools import cut_points

FMNIST = np.repeat(np.arange(10), 6000)
CIFAR10 = np.repeat(np.arange(10), 5000)


@pytest.mark.parametrize("ordered", [True, False])
def test_fashion_mnist_at_seed_42_has_the_distances_of_celm_table_4(ordered):
    labels = FMNIST if ordered else np.random.default_rng(0).permutation(FMNIST)
    counts = make_split(labels, 10, "dir_client(0.05)", 5, 42).counts
    assert counts.sum(axis=1).tolist() == [4964, 17618, 6369, 12723, 18326]
    found = distances(counts)
    assert round(found["jsd"], 4) == 0.6133
    assert round(found["emd"], 4) == 0.1144
    assert round(found["hellinger"], 4) == 0.6929


def test_cifar_10_at_seed_42_has_the_distances_of_celm_table_4():
    counts = make_split(CIFAR10, 10, "dir_client(0.01)", 5, 42).counts
    assert counts.sum(axis=1).tolist() == [4803, 14998, 5191, 10004, 15004]
    found = distances(counts)
    assert round(found["jsd"], 4) == 0.6459
    assert round(found["emd"], 4) == 0.1238
    assert round(found["hellinger"], 4) == 0.7355


@pytest.mark.parametrize(
    ("alpha", "jsd", "hellinger"), [(0.05, 0.586, 0.660), (0.01, 0.627, 0.715)]
)
def test_mean_distances_over_seeds(alpha, jsd, hellinger):
    # One draw deviates by .022 / .025 (.013 / .015 at 0.01), so the mean of 300 by about .0015.
    labels = np.repeat(np.arange(10), 500)
    found = [
        distances(make_split(labels, 10, f"dir_client({alpha})", 5, seed).counts)
        for seed in range(300)
    ]
    assert np.mean([d["jsd"] for d in found]) == pytest.approx(jsd, abs=0.005)
    assert np.mean([d["hellinger"] for d in found]) == pytest.approx(hellinger, abs=0.005)


def test_twenty_clients_are_never_empty_at_the_smallest_alpha():
    for seed in range(20):
        get("dir_client(0.01)").split(CIFAR10, 20, 10, seed)  # raises if a client is empty


def published(labels, clients, alpha, seed) -> list[np.ndarray]:
    """Divide as the CELM author's public code is written: one draw a client, one sum a class."""
    rng = np.random.RandomState(seed)
    drawn = np.zeros((clients, 10))
    for i in range(clients):
        drawn[i] = rng.dirichlet(np.repeat(alpha, 10))
    held = [[] for _ in range(clients)]
    for k in range(10):
        pool = np.flatnonzero(labels == k)
        rng.shuffle(pool)
        shares = drawn[:, k] / drawn[:, k].sum()
        bounds = [0, *(np.cumsum(shares) * len(pool)).astype(int)[:-1], len(pool)]
        for i in range(clients):
            held[i] += pool[bounds[i] : bounds[i + 1]].tolist()
    return [np.sort(part) for part in held]


@pytest.mark.parametrize("clients", [5, 8, 20])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 100])
def test_samples_go_to_the_clients_of_the_authors_code(clients, alpha):
    for seed in (41, 42, 43):
        expected = published(FMNIST, clients, alpha, seed)
        found = get(f"dir_client({alpha})").split(FMNIST, clients, 10, seed)
        assert all(map(np.array_equal, expected, found))


def test_twenty_clients_at_seed_42_have_the_sizes_of_the_authors_code():
    # As that code gives them when it is run. Adding up all classes at once, instead of one class
    # after another, leaves client 14 a sample more (4916) and the last one a sample less (3066).
    sizes = [len(part) for part in get("dir_client(0.01)").split(FMNIST, 20, 10, 42)]
    assert sizes[:10] == [2673, 1222, 3045, 3206, 3397, 2708, 1222, 1535, 2956, 3086]
    assert sizes[10:] == [1224, 3178, 9163, 2980, 4915, 1237, 3066, 2955, 3165, 3067]


def test_all_samples_are_used():
    parts = get("dir_client(0.1)").split(CIFAR10, 5, 10, 0)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(50_000))


def test_alpha_100_is_nearly_uniform():
    counts = make_split(FMNIST, 10, "dir_client(100)", 5, 0).counts
    # Each share is about 1/5 with a relative deviation of 1 / sqrt(100) = 10 %; 40 % is 4 of them.
    assert (np.abs(counts - 1200) < 480).all()


def test_cuts_are_rounded_down_and_the_last_piece_takes_the_rest():
    # cumsum * 10 = 2.5, 5.9, 10 -> 2, 5: pieces of 2, 3, 5
    assert cut_points(np.array([0.25, 0.34, 0.41]), 10).tolist() == [2, 5]
