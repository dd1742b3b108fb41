"""Every mistake is one line that names the key, its value and what would be right."""

import numpy as np
import pytest
from support.refusals import refused
from support.small import small_spec

from fedlogit.errors import FedlogitError
from fedlogit.partition import Partition, get, make_split
from fedlogit.spec import Public

LABELS = np.repeat(np.arange(10), 20)


def refuse(message, partition="iid", clients=4, seed=0, labels=LABELS, classes=10, **rest):
    with pytest.raises(FedlogitError) as caught:
        make_split(labels, classes, partition, clients, seed, **rest)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("k_classes(11)", "k = 11: at most 10"),
        ("pathological(11)", "classes_per_client = 11: at most 10"),
        ("pathological(11, balanced=True)", "classes_per_client = 11: at most 10"),
        ("pls(11, 5, 2)", "m0 = 11: at most 10"),
        ("sls(11)", "m0 = 11: at most 10"),
        ("sls_fixed(11)", "m0 = 11: at most 10"),
        ("sls_random(11)", "m0 = 11: at most 10"),
        ("maverick(10)", "rare = 10: at most 9"),
        ("fr(11)", "common = 11: at most 10"),
        ("frm(10)", "rare = 10: at most 9"),
        ("frm(rare=5, common=6)", "common = 6: at most 5"),
    ],
)
def test_more_classes_than_exist(call, message):
    refuse(message, call)


@pytest.mark.parametrize("name", ["dir_client", "dir_class", "dir_equal", "fr_repeat"])
@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ("0", "alpha = 0: Input should be greater than 0"),
        ("-1.5", "alpha = -1.5: Input should be greater than 0"),
        ("1e999", "alpha = inf: Input should be a finite number"),
        ("'a'", "alpha = 'a': Input should be a valid number"),
    ],
)
def test_alpha(name, alpha, message):
    refuse(f"partition {name}: {message}", f"{name}({alpha})")


@pytest.mark.parametrize("name", ["dir_client(1e-9)", "fr_repeat(1e-9)"])
def test_an_alpha_that_underflows(name):
    refuse("use one between 0.001 and 1,000", name)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("k_classes(2, private_size=0)", "private_size = 0: Input should be greater than 0"),
        ("k_classes(2, private_size=-5)", "private_size = -5: Input should be greater than 0"),
        ("k_classes(3, private_size=2)", "k = 3: at most 2, the private_size"),
        ("k_classes(2, class_sets='even')", "class_sets = 'even': Input should be 'random' or"),
        ("iid(0)", "size = 0"),
        ("fr(share=1.0)", "share = 1.0: Input should be less than 1"),
        ("pls(2, 5, 6)", "s_min = 6: at most 5, the s_max"),
        ("dir_class(1.0, min_size=51)", "min_size = 51: at most 50, the samples per client"),
        ("dir_client", "key 'alpha' is missing"),
        ("dir_equal(1.0, size=0)", "size = 0: Input should be greater than 0"),
        ("dir_equal(1.0, size=51)", "size = 51: at most 50, the samples per client"),
        ("dir_equal(1.0, prior='even')", "prior = 'even': Input should be 'data' or 'uniform'"),
        ("dir_equal(5e-324)", "dir_equal: alpha = 5e-324: too near the limits of a float"),
        ("quantity(0)", "beta = 0: Input should be greater than 0"),
        ("quantity(1e999)", "beta = inf: Input should be a finite number"),
        ("quantity(1.0, min_size=0)", "min_size = 0: Input should be greater than 0"),
        ("quantity(1.0, min_size=51)", "min_size = 51: at most 50, the samples per client"),
        ("shards(0)", "per_client = 0: Input should be greater than 0"),
        ("shards(51)", "per_client = 51: at most 50, the samples per client"),
        ("iid(1, 2)", "partition iid: too many arguments; it takes size"),
    ],
)
def test_other_parameters(call, message):
    refuse(message, call)


def test_unknown_partition_suggests_the_nearest():
    refuse("unknown partition 'dir_clent'; did you mean 'dir_client'?", "dir_clent(0.1)")
    with pytest.raises(FedlogitError, match="did you mean 'pathological'"):
        get("pathologic(2)")


def test_more_clients_than_samples():
    refuse("clients = 201 is more than the 200 samples", clients=201)
    refuse("clients = 0: at least one client", clients=0)


def test_an_empty_client_is_named_with_the_parameter():
    # 150 uneven shares of 200 samples: some round down to nothing.
    refuse("use fewer than 150 clients or change alpha", "dir_client(1.0)", clients=150)
    refuse("partition dir_client(alpha=1.0) leaves client ", "dir_client(1.0)", clients=150)
    refuse(
        "leaves client 3 without samples; use fewer than 4 clients or change common",
        "fr(share=0.001)",
    )
    refuse("use a smaller s_max or s_min, or fewer clients", "pls(10, 20, 20)", clients=5)


@pytest.mark.parametrize("call", ["shards", "dir_equal(1.0)", "dir_client(0.05)", "sls", "fr"])
def test_a_text_has_no_classes_to_divide_by(call):
    message = f"partition {get(call)} divides by class, and a text has no classes; use iid"
    refuse(message, call, labels=np.zeros(200, int), classes=1, length=8)
    assert len(make_split(LABELS, 10, call, 4, 0).clients) == 4


def test_quantity_that_never_reaches_min_size():
    refuse("none of 10000 draws gave each of 4 clients min_size = 50", "quantity(0.1, 50)")


@pytest.mark.slow
def test_dir_class_that_never_reaches_min_size():
    refuse("none of 10000 draws gave each of 19 clients min_size = 10", "dir_class(0.01)", 19)


@pytest.mark.parametrize(
    ("call", "clients", "least"),
    [("maverick", 1, 2), ("fr", 1, 2), ("fr_repeat", 1, 2), ("frm", 2, 3)],
)
def test_too_few_clients_for_the_roles(call, clients, least):
    refuse(f"clients = {clients}: {call} needs at least {least}", call, clients)
    assert len(make_split(LABELS, 10, call, least, 0).clients) == least


def test_natural():
    refuse("partition natural needs a dataset with groups", "natural")
    groups = np.arange(200) % 3
    refuse("has one client per group, 3 here", "natural", groups=groups)
    with pytest.raises(FedlogitError, match="150 group ids do not match the 200 samples"):
        get("natural").split(LABELS, 3, 10, 0, groups[:150])


@pytest.mark.parametrize(
    ("public", "message"),
    [
        (Public(size=200), "public.size = 200: give less than the 200 samples"),
        (Public(size=21, classes=(3,)), "public.size = 21: public.classes have only 20 samples"),
        (Public(size=5, classes=(3, 10)), "public.classes = [3, 10]: give classes from 0 to 9"),
        (Public(size=5, classes=(-1,)), "public.classes = [-1]: give classes from 0 to 9"),
        (Public(size=5, classes=()), "public.classes = []: give classes from 0 to 9"),
    ],
)
def test_public_set(public, message):
    refuse(message, public=public)


def test_the_last_samples_are_of_whatever_class():
    with refused("last takes the last samples, whatever their class; give either last or classes"):
        small_spec(public={"size": 10, "last": True, "classes": [0]})


def test_subsample():
    refuse("train_size = 201", train_size=201)
    refuse("public.size = 100: give less than the 100", public=Public(size=100), train_size=100)


def test_labels():
    refuse("labels run from 0 to 9: with classes = 9 they must lie in 0 to 8", classes=9)
    with pytest.raises(FedlogitError, match="1-D integer array"):
        get("iid").split(np.zeros((2, 2), int), 1, 1, 0)


def test_a_seed_that_the_legacy_generator_does_not_take():
    refuse("seed = 4294967296", "sls", seed=2**32)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (None, "divide returned NoneType; give a list of 2 arrays of indices, one per client"),
        ([[0]], "divide returned 1 parts; give a list of 2 arrays"),
        ([[0], [0.5]], "divide gave client 1 float64 of shape (1,); give a 1-D array of integer"),
        ([[0], [200]], "divide gave client 1 indices from 200 to 200; they must lie in 0 to 199"),
        ([[-1], [0]], "divide gave client 0 indices from -1 to -1; they must lie in 0 to 199"),
    ],
)
def test_what_a_partition_of_ones_own_returns(parts, message):
    class Mine(Partition):
        def divide(self, labels, clients, classes, seed, groups):
            return parts

    with pytest.raises(FedlogitError) as caught:
        Mine().split(LABELS, 2, 10, 0)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
