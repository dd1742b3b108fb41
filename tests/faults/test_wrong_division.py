"""A partition of other data, clients or seed is refused in training and in reading its run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.small import small_spec

from fedlogit.data import load
from fedlogit.errors import DataError
from fedlogit.files import array_digest
from fedlogit.runs.setup import divide, open_data


@pytest.fixture
def prepared(tmp_path):
    """A folder with prepared digits."""
    load("digits", tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"partition": "iid(90)"}, "other samples at client 0"),
        ({"clients": 1, "partition": "iid(90)"}, "1 clients instead of 4"),
        ({"seed": 1}, "other samples at client 0"),
        ({"public": {"size": 50}}, "other samples at client 0|another public set"),
    ],
)
def test_the_file_of_another_spec_is_refused(digits, prepared, tmp_path, changes, difference):
    path, spec, other = tmp_path / "indices.npz", small_spec(), small_spec(**changes)
    divide(other, digits).save(path)
    with pytest.raises(DataError, match=f"not the partition that the spec implies: ({difference})"):
        open_data(spec, prepared, path)
    divide(spec, digits).save(path)
    _, split = open_data(spec, prepared, path)
    assert split.difference(divide(spec, digits)) == ""


def test_a_file_with_right_digests_and_the_same_samples_twice_is_refused(
    digits, prepared, tmp_path
):
    spec = small_spec()
    split, path = divide(spec, digits), tmp_path / "indices.npz"
    clients = (split.clients[0], split.clients[0], *split.clients[2:])
    digest = array_digest(*clients, split.public)
    replace(split, clients=clients, digest=digest).save(path)
    with pytest.raises(DataError, match="other samples at client 1"):
        open_data(spec, prepared, path)
