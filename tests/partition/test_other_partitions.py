"""IID, natural, and the maverick and free-rider settings."""

import numpy as np
import pytest

from fedlogit.errors import FedlogitError
from fedlogit.partition import Split, distances, get, make_split
from fedlogit.partition.roles import class_order

CIFAR10 = np.repeat(np.arange(10), 5000)

# Training images per centre and diagnosis of Fed-ISIC2019.
FED_ISIC = [
    [2279, 3363, 2245, 606, 923, 97, 87, 330],
    [20, 2977, 2, 0, 96, 23, 45, 0],
    [533, 1470, 174, 20, 379, 40, 64, 11],
    [276, 649, 223, 86, 406, 20, 3, 144],
    [166, 349, 0, 0, 140, 0, 0, 0],
    [58, 276, 5, 0, 6, 4, 2, 0],
]


def test_iid_sizes_differ_by_at_most_one_and_all_is_used():
    parts = get("iid").split(np.zeros(11, int), 3, 1, 0)
    assert [len(part) for part in parts] == [4, 4, 3]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(11))


def test_iid_size_is_a_cap_per_client():
    assert [len(p) for p in get("iid(3)").split(np.zeros(11, int), 3, 1, 0)] == [3, 3, 3]
    assert [len(p) for p in get("iid(size=100)").split(np.zeros(11, int), 2, 1, 0)] == [6, 5]


def test_natural_gives_each_group_to_a_client_in_ascending_order():
    parts = get("natural").split(np.zeros(5, int), 2, 1, 0, groups=np.array([7, 3, 7, 7, 3]))
    assert [part.tolist() for part in parts] == [[1, 4], [0, 2, 3]]


def test_fed_isic_has_the_sizes_and_distances_of_celm_table_4():
    counts = np.array(FED_ISIC)
    labels = np.concatenate([np.repeat(np.arange(8), row) for row in counts])
    groups = np.repeat(np.arange(6), counts.sum(axis=1))
    split = make_split(labels, 8, "natural", 6, 0, groups=groups)
    assert split.counts.tolist() == FED_ISIC
    assert split.counts.sum(axis=1).tolist() == [9930, 3163, 2691, 1807, 655, 351]
    found = distances(split.counts)
    assert round(found["jsd"], 4) == 0.5351
    assert round(found["emd"], 4) == 0.0968
    assert round(found["hellinger"], 4) == 0.5829


def test_maverick_alone_holds_all_of_the_rare_classes():
    split = make_split(CIFAR10, 10, "maverick", 5, 0)
    rare = np.flatnonzero(split.counts[0])
    assert split.counts[0, rare].tolist() == [5000] * 3
    assert (split.counts[1:, rare] == 0).all()
    # The other 7 classes, 35,000 images, among 4 clients.
    assert split.counts.sum(axis=1).tolist() == [15_000] + [8750] * 4
    assert (np.delete(split.counts[1:], rare, axis=1) > 0).all()
    assert split.notes[0].endswith(": client 0 alone holds classes 7, 8, 9")


@pytest.mark.parametrize("name", ["maverick", "frm"])
def test_rare_classes_are_the_last_ones_or_drawn_by_each_seed(name):
    def rare(partition: str) -> list[list[int]]:
        splits = [make_split(CIFAR10, 10, partition, 5, seed) for seed in (41, 42, 43)]
        return [np.flatnonzero(split.counts[0]).tolist() for split in splits]

    assert rare(f"{name}(rare=2)") == [[8, 9]] * 3
    assert len(set(map(tuple, rare(f"{name}(rare_classes='drawn')")))) > 1


def test_free_rider_holds_a_tenth_of_an_average_client_in_two_common_classes():
    split = make_split(CIFAR10, 10, "fr", 5, 0)
    # 10 % of 50,000 / 5 is 1,000, 500 of each class; the other 49,000 are shared by 4.
    assert split.counts.sum(axis=1).tolist() == [12_250] * 4 + [1000]
    assert sorted(split.counts[4].tolist()) == [0] * 8 + [500, 500]
    assert (split.counts[:4] > 0).all()
    assert "client 4 is the free rider" in split.notes[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_free_riders_first_classes_have_what_is_left(seed):
    # 10 % of 1,000 / 6 is 16.67, rounded 17: 9 of its first class and 8 of its second.
    labels, order = np.repeat(np.arange(10), 100), class_order(10, seed)
    fr = make_split(labels, 10, "fr", 6, seed)
    assert fr.counts[5, order[:2]].tolist() == [9, 8]
    # Beside a maverick with the last three classes they are the first that are not rare.
    common = [c for c in order if c < 7]
    frm = make_split(labels, 10, "frm", 6, seed)
    assert frm.counts[5, common[:2]].tolist() == [9, 8]


def test_free_rider_beside_a_maverick():
    split = make_split(CIFAR10, 10, "frm", 5, 0)
    # 50,000 - 15,000 rare - 1,000 of the rider, shared by 3: 11,333 and a third.
    assert split.counts.sum(axis=1).tolist() == [15_000, 11_334, 11_333, 11_333, 1000]
    rare, common = np.flatnonzero(split.counts[0]), np.flatnonzero(split.counts[4])
    assert (len(rare), len(common)) == (3, 2)
    assert not np.isin(common, rare).any()
    assert (split.counts[1:4, common] > 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_three_settings_agree_on_rare_and_common_classes(seed):
    names = ("maverick(rare_classes='drawn')", "fr", "frm(rare_classes='drawn')")
    maverick, fr, frm = (make_split(CIFAR10, 10, name, 5, seed).counts > 0 for name in names)
    assert np.array_equal(maverick[0], frm[0])
    assert np.array_equal(fr[4], frm[4])


def test_repeating_free_rider_has_the_mean_size_of_the_others_rounded_down():
    split = make_split(np.repeat(np.arange(10), 6000), 10, "fr_repeat", 5, 42)
    # (12,021 + 11,475 + 13,051 + 12,360) / 4 = 12,226.75
    assert [len(part) for part in split.clients] == [12_021, 11_475, 13_051, 12_360, 12_226]


def test_repeating_free_rider_holds_ten_samples_many_times():
    split = make_split(CIFAR10, 10, "fr_repeat", 5, 42)
    *others, rider = split.clients
    assert len(rider) == int(np.mean([len(part) for part in others]))
    values, times = np.unique(rider, return_counts=True)
    assert len(values) <= 10
    # np.resize repeats the draw in order, so a sample drawn once appears n // 10 or one time more.
    assert times.min() in (len(rider) // 10, len(rider) // 10 + 1)
    plain = make_split(CIFAR10, 10, "dir_client(1.0)", 5, 42)
    assert all(map(np.array_equal, others, plain.clients[:-1]))
    assert np.isin(values, plain.clients[-1]).all()


@pytest.mark.parametrize(
    ("name", "rare", "riders"),
    [
        ("maverick", 3, ()),
        ("fr", 0, (4,)),
        ("frm", 3, (4,)),
        ("fr_repeat", 0, (4,)),
        ("iid", 0, ()),
    ],
)
def test_roles_are_kept_with_the_split(tmp_path, name, rare, riders):
    split = make_split(CIFAR10, 10, name, 5, 0)
    split.save(tmp_path / "indices.npz")
    roles = Split.load(tmp_path / "indices.npz").roles
    assert roles == split.roles
    assert roles.free_riders == riders
    assert len(roles.rare_classes) == rare
    held_elsewhere = split.counts[1:, list(roles.rare_classes)]
    assert not held_elsewhere.any(), "a rare class is client 0's alone"


@pytest.mark.parametrize("name", ["maverick", "frm"])
def test_a_rare_class_that_nobody_can_hold_is_refused(name):
    labels = np.repeat(np.arange(3), 100)  # of ten classes, seven are empty
    with pytest.raises(FedlogitError, match="has no samples, so no client holds it"):
        make_split(labels, 10, name, 5, 0)
