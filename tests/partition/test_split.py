"""Subsample, public set, partition of the rest, and the file that keeps them."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from support.small import SMALL, TEXT, small_spec

from fedlogit.errors import DataError, FedlogitError
from fedlogit.files import load_npz, save_npz
from fedlogit.partition import Partition, Roles, Split, divide, get, make_split
from fedlogit.partition.stratified import stratified
from fedlogit.spec import Public, SplitSpec

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(4), [400, 300, 200, 100]))


def per_class(indices):
    return np.bincount(LABELS[indices], minlength=4).tolist()


def test_without_subsample_and_public_set_the_partition_sees_the_labels_as_they_are():
    split = make_split(LABELS, 4, "dir_client(0.5)", 3, 0)
    parts = get("dir_client(0.5)").split(LABELS, 3, 4, 0)
    assert all(map(np.array_equal, split.clients, parts))
    assert split.public.size == 0
    assert split.public.dtype == np.int64


def test_public_set_is_disjoint_and_has_equally_many_of_each_class():
    split = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=42))
    # 42 // 4 = 10 of each, the remaining 2 from the first classes.
    assert per_class(split.public) == [11, 11, 10, 10]
    everything = np.concatenate([split.public, *split.clients])
    assert np.array_equal(np.sort(everything), np.arange(1000))


def test_what_a_class_lacks_comes_from_the_others():
    # 600 / 4 = 150, class 3 has only 100; its 50 are shared by classes 0, 1, 2 as 17, 17, 16.
    split = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=600))
    assert per_class(split.public) == [167, 167, 166, 100]


def test_public_classes_restrict_it():
    split = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=9, classes=(3, 1)))
    assert per_class(split.public) == [0, 5, 0, 4]


def test_the_last_samples_may_be_public_and_pieces_are_in_order():
    split = make_split(np.zeros(11, int), 1, "contiguous", 3, 0, public=Public(size=4, last=True))
    assert split.public.tolist() == [7, 8, 9, 10]
    assert [part.tolist() for part in split.clients] == [[0, 1, 2], [3, 4], [5, 6]]
    other = make_split(np.zeros(11, int), 1, "contiguous", 3, 1, public=Public(size=4, last=True))
    assert other.digest == split.digest, "the seed does not matter"


def test_pieces_of_a_text_are_at_least_a_sequence():
    with pytest.raises(FedlogitError) as error:
        make_split(
            np.zeros(9, int), 1, "contiguous", 6, 0, public=Public(size=4, last=True), length=10
        )
    assert "text.length = 10: longer than a client's chunk, which would have 8" in str(error.value)


def test_without_sequences_a_piece_may_be_shorter():
    split = make_split(np.zeros(2, int), 1, "contiguous", 2, 0)
    assert [part.tolist() for part in split.clients] == [[0], [1]]
    with pytest.raises(FedlogitError, match="clients = 3 is more than the 2 samples"):
        make_split(np.zeros(2, int), 1, "contiguous", 3, 0)


def test_later_settings_leave_the_names_of_divisions_alone():
    plain = small_spec()
    assert set(plain.split_key()) == {
        "dataset", "train_size", "partition", "clients", "public", "seed",
    }  # fmt: skip
    assert set(plain.split_key()["public"]) == {"size", "stratified", "classes", "overlap"}
    text = small_spec(**TEXT, method="local").split_key()
    assert text["text"] == {"vocabulary": 300, "length": 32, "evaluation_split": "valid"}
    assert text["public"]["last"] is True
    assert SplitSpec.read(text, "test").public.last


def test_an_overlapping_public_set_stays_in_the_pool():
    plain = make_split(LABELS, 4, "iid", 3, 0)
    split = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=42, overlap=True))
    assert all(map(np.array_equal, split.clients, plain.clients))
    disjoint = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=42))
    assert np.array_equal(split.public, disjoint.public)
    assert split.digest not in (plain.digest, disjoint.digest)


def test_an_unstratified_public_set_follows_the_pool():
    split = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=500, stratified=False))
    # Half of everything: 200, 150, 100, 50 on average, deviations below 8.
    assert np.abs(np.array(per_class(split.public)) - [200, 150, 100, 50]).max() < 40


def test_samples_of_another_data_set_are_public_and_anchors_come_off_the_end():
    labels = np.arange(100) % 10
    public = Public(size=30, stratified=False, dataset="photos8", anchors=7)
    split = make_split(labels, 10, "iid", 4, 0, public=public, foreign=50)
    assert split.public[:7].tolist() == list(range(93, 100))
    assert (np.diff(split.public) > 0).all()
    assert split.public[7] >= 100
    assert split.public[-1] < 150
    assert sorted(np.concatenate(split.clients)) == list(range(93))
    whole = make_split(labels, 10, "iid", 4, 0, public=public.model_copy(update={"size": 50}),
                       foreign=50)  # fmt: skip
    assert len(whole.public) == 57


@pytest.mark.parametrize(
    ("public", "said"),
    [
        ({"size": 51}, "public.size = 51: photos8 has only 50 samples"),
        ({"size": 5, "anchors": 100}, "public.anchors = 100: give less than the 100 samples"),
    ],
)
def test_too_few_samples_of_another_data_set_or_for_anchors(public, said):
    chosen = Public(stratified=False, dataset="photos8", **public)
    with pytest.raises(FedlogitError, match=said):
        make_split(np.arange(100) % 10, 10, "iid", 4, 0, public=chosen, foreign=50)


def test_a_subsample_keeps_class_proportions_and_holds_all_else():
    split = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=20), train_size=100)
    everything = np.concatenate([split.public, *split.clients])
    assert len(np.unique(everything)) == 100
    assert per_class(everything) == [40, 30, 20, 10]
    assert split.counts.sum() == 80


@pytest.mark.parametrize(
    ("size", "taken"),
    # Of 5, 3 and 2 samples: 4 are 2.0, 1.2 and 0.8; 7 are 3.5, 2.1 and 1.4; 5 are 2.5, 1.5 and 1.0.
    [(4, [2, 1, 1]), (7, [4, 2, 1]), (5, [3, 1, 1])],
)
def test_what_is_left_of_a_stratified_draw_goes_to_the_largest_remainders(size, taken):
    labels = np.array([2, 0, 1, 0, 0, 1, 0, 1, 2, 0])
    drawn = stratified(labels, size, np.random.default_rng(0))
    assert np.bincount(labels[drawn]).tolist() == taken
    assert (np.diff(drawn) > 0).all()


def test_groups_follow_the_subsample():
    groups = LABELS + 10
    split = make_split(
        LABELS, 4, "natural", 4, 0, public=Public(size=8), train_size=100, groups=groups
    )
    # 100 in proportion 4:3:2:1, less 2 public images of each class.
    assert split.counts.tolist() == np.diag([38, 28, 18, 8]).tolist()


def test_public_set_and_subsample_depend_on_the_seed():
    first, again, other = (
        make_split(LABELS, 4, "iid", 3, seed, public=Public(size=20), train_size=100)
        for seed in (0, 0, 1)
    )
    assert first.digest == again.digest != other.digest
    assert not np.array_equal(first.public, other.public)


def test_a_split_survives_its_file(tmp_path):
    split = make_split(LABELS, 4, "maverick(1)", 3, 0, public=Public(size=20))
    split.save(tmp_path / "indices.npz")
    read = Split.load(tmp_path / "indices.npz")
    assert all(map(np.array_equal, read.clients, split.clients))
    assert np.array_equal(read.public, split.public)
    assert np.array_equal(read.counts, split.counts)
    assert (read.digest, read.notes) == (split.digest, split.notes)
    assert read.notes


def test_more_than_ten_clients_keep_their_order(tmp_path):
    split = make_split(LABELS, 4, "iid", 12, 0)
    split.save(tmp_path / "indices.npz")
    read = Split.load(tmp_path / "indices.npz")
    assert all(map(np.array_equal, read.clients, split.clients))
    assert read.notes == ()


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "indices.npz"
    make_split(LABELS, 4, "iid", 3, 0).save(path)
    arrays = load_npz(path)
    save_npz(path, arrays | {"client_001": arrays["client_001"] + 1})
    with pytest.raises(DataError, match="does not match its digest"):
        Split.load(path)
    save_npz(path, {"x_train": np.zeros(3)})
    with pytest.raises(DataError, match="is not a split: it has no checksum, counts"):
        Split.load(path)


@pytest.mark.parametrize("name", ["counts", "notes", "rare_classes", "free_riders"])
def test_what_is_beside_the_indices_is_covered_too(tmp_path, name):
    path = tmp_path / "indices.npz"
    make_split(LABELS, 4, "maverick(1)", 3, 0).save(path)
    arrays = load_npz(path)
    other = np.array(["another"]) if name == "notes" else np.append(arrays[name], [1])
    save_npz(path, arrays | {name: other})
    with pytest.raises(DataError, match="does not match its digest"):
        Split.load(path)


def test_an_array_under_another_name_is_refused(tmp_path):
    make_split(LABELS, 4, "iid", 3, 0).save(tmp_path / "indices.npz")
    arrays = load_npz(tmp_path / "indices.npz")
    save_npz(tmp_path / "indices.npz", arrays | {"client_099": arrays.pop("client_002")})
    with pytest.raises(DataError, match="is damaged"):
        Split.load(tmp_path / "indices.npz")


def test_the_first_difference_between_two_splits_is_named():
    split = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=20))
    same = make_split(LABELS, 4, "iid", 3, 0, public=Public(size=20))
    assert split.difference(same) == ""
    assert "3 clients instead of 2" in split.difference(make_split(LABELS, 4, "iid", 2, 0))
    other = make_split(LABELS, 4, "iid", 3, 1, public=Public(size=20))
    assert split.difference(other).startswith("other samples at client 0")
    for change, message in (
        ({"public": split.public[1:]}, r"another public set (20 instead of 19)"),
        ({"counts": split.counts + 1}, "other counts of classes"),
        ({"roles": Roles(free_riders=(0,))}, "other roles"),
        ({"notes": ("another",)}, "other notes"),
    ):
        assert split.difference(replace(split, **change)).startswith(message)


def test_a_split_spec_reads_what_a_run_spec_gives():
    data = {
        "dataset": "digits",
        "train_size": None,
        "partition": {"name": "dir_client", "params": {"alpha": 0.5}},
        "clients": 3,
        "public": {
            "size": 20,
            "stratified": True,
            "classes": [0, 1],
            "overlap": False,
            "dataset": None,
            "anchors": 0,
        },
        "seed": 0,
    }
    found = SplitSpec.read(data, "test").model_dump(mode="json")
    assert found.pop("text") is None
    assert found["public"].pop("last") is False
    assert found == data
    short = {key: data[key] for key in ("dataset", "partition", "clients", "seed")}
    left_out = SplitSpec.read(short, "test")
    assert (left_out.train_size, left_out.public, left_out.text) == (None, None, None)
    with pytest.raises(FedlogitError, match="unknown key 'client'; did you mean 'clients'"):
        SplitSpec.read(data | {"client": 3}, "test")


def test_a_data_set_is_divided_as_its_labels_are(digits):
    spec = small_spec(partition="dir_client(0.5)", train_size=500)
    implied = divide(spec.split_spec(), digits)
    public = Public.read(SMALL["public"], "test")
    labels = make_split(digits.y_train, 10, "dir_client(0.5)", 4, 0, public=public, train_size=500)
    assert implied.difference(labels) == ""


def test_probes_that_are_joined_on_are_not_divided(digits, tiles):
    spec, joined = tiles
    implied = divide(spec.split_spec(), joined)
    assert implied.difference(divide(spec.split_spec(), digits)) == ""
    assert max(map(max, implied.clients)) < len(digits.y_train) <= min(implied.public)


class Shared(Partition):
    """Gives client 1 the samples of client 0, or one of its own twice."""

    name = "shared"
    twice: bool = False

    def divide(self, labels, clients, classes, seed, groups):
        parts = np.array_split(np.arange(len(labels)), clients)
        parts[1] = np.append(parts[1], parts[1 if self.twice else 0][0])
        return parts


class Declared(Shared):
    """The same, and says so."""

    name = "declared"
    disjoint = False
    repeats = True


@pytest.mark.parametrize(
    ("twice", "said"),
    [
        (False, r"gives a sample to two clients; .*disjoint = False"),
        (True, r"gives client 1 a sample twice; .*repeats = True"),
    ],
)
def test_samples_that_are_shared_or_held_twice_must_be_declared(twice, said):
    with pytest.raises(FedlogitError, match=said):
        Shared(twice=twice).split(LABELS, 3, 4, 0)
    parts = Declared(twice=twice).split(LABELS, 3, 4, 0)
    assert sum(map(len, parts)) == len(LABELS) + 1


@pytest.mark.parametrize("draw", [np.random.permutation, np.random.default_rng().permutation])
def test_an_own_partition_that_no_seed_decides_is_refused(draw):
    class Chance(Partition):
        name: ClassVar[str] = "chance"

        def divide(self, labels, clients, classes, seed, groups):
            return np.array_split(draw(len(labels)), clients)

    with pytest.raises(FedlogitError, match="otherwise when it is called again with the same seed"):
        Chance().split(LABELS, 3, 4, 0)


def test_parts_are_64_bit_whatever_a_partition_divides_into():
    class Narrow(Partition):
        name: ClassVar[str] = "narrow"

        def divide(self, labels, clients, classes, seed, groups):
            return np.array_split(np.arange(len(labels), dtype=np.int16), clients)

    parts = Narrow().split(np.arange(10), 2, 10, 0)
    assert {part.dtype for part in parts} == {np.dtype(np.int64)}


def test_a_division_knows_the_centres_of_its_data_set(digits):
    data = replace(digits, group_train=np.arange(len(digits.y_train)) % 2)
    spec = SplitSpec.model_validate(
        {"dataset": "digits", "partition": "natural", "clients": 2, "seed": 0, "train_size": None}
    )
    first, second = divide(spec, data).clients
    assert set(data.group_train[first]) == {0}
    assert set(data.group_train[second]) == {1}
