"""A public set shares no sample with private sets or the test split."""

import dataclasses

import numpy as np
import pytest
from support.small import small_spec

from fedlogit.errors import FedlogitError
from fedlogit.runs.leakage import check_disjoint, twins
from fedlogit.runs.setup import divide


@pytest.fixture(scope="module")
def split(digits):
    return divide(small_spec(), digits)


def test_twins_are_equal_rows():
    a, b = np.arange(6, dtype=np.uint8).reshape(3, 2), np.array([[2, 3], [9, 9]], np.uint8)
    assert twins(a, [b]) == 1
    assert twins(a, [b, a]) == 3


def test_an_honest_division_passes(digits, split):
    check_disjoint(digits, split)


def test_a_public_set_that_is_private_too(digits, split):
    mixed = dataclasses.replace(split, public=split.clients[1][:20])
    with pytest.raises(FedlogitError, match="20 of 20 public samples are also in private sets"):
        check_disjoint(digits, mixed)
    check_disjoint(digits, mixed, private=False)


@pytest.mark.parametrize("count", [1, 5])
def test_a_public_set_with_test_images_under_other_indices(digits, split, count):
    """The content counts, not the index."""
    x = digits.x_train.copy()
    x[split.public[:count]] = digits.x_test[:count]
    said = f"{count} of 60 public samples are also in the test split"
    with pytest.raises(FedlogitError, match=said):
        check_disjoint(dataclasses.replace(digits, x_train=x), split)


def test_one_public_sample_in_a_thousand_may_have_a_twin(digits, split):
    x = digits.x_train.copy()
    x[split.public[0]] = digits.x_test[0]
    mixed = dataclasses.replace(digits, x_train=x)
    many = dataclasses.replace(split, public=np.resize(split.public[1:], 1000))
    many.public[0] = split.public[0]
    check_disjoint(mixed, many)
    many.public[1] = split.public[0]
    with pytest.raises(FedlogitError, match="2 of 1000 public samples are also in the test split"):
        check_disjoint(mixed, many)


def test_an_empty_public_set(digits, split):
    with pytest.raises(FedlogitError, match="public set is empty"):
        check_disjoint(digits, dataclasses.replace(split, public=np.empty(0, np.int64)))


def test_probes_of_another_data_set_are_compared_too(tiles):
    spec, joined = tiles
    division = divide(spec, joined)
    check_disjoint(joined, division)
    x = joined.x_train.copy()
    x[1437:] = x[division.clients[0][0]]
    with pytest.raises(FedlogitError, match="60 of 60 public samples are also in private sets"):
        check_disjoint(dataclasses.replace(joined, x_train=x), division)
