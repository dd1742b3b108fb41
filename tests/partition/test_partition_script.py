"""`partition` from options and from a file, on scikit-learn's digits."""

import csv
import json
from contextlib import suppress

import numpy as np
import pytest
from support.refusals import refused

from fedlogit.cli import call
from fedlogit.commands import partition
from fedlogit.partition import Split


def test_options_and_file_give_the_same_five_files(tmp_path):
    spec = {
        "dataset": "digits",
        "train_size": 1000,
        "partition": "k_classes(2, private_size=100)",
        "clients": 5,
        "public": {"size": 50},
        "seed": 3,
    }
    (tmp_path / "split.json").write_text(json.dumps(spec))
    data = ["--data", str(tmp_path / "prepared")]
    a, b = ["--out", str(tmp_path / "a")], ["--out", str(tmp_path / "b")]
    assert call("partition", [*data, "--spec", str(tmp_path / "split.json"), *a]) == 0
    what = ["--dataset", "digits", "--partition", spec["partition"]]
    numbers = ["--train-size", "1000", "--clients", "5", "--seed", "3", "--public-size", "50"]
    assert call("partition", [*data, *what, *numbers, *b]) == 0
    names = ["bubbles.pdf", "bubbles.png", "counts.csv", "distances.json", "indices.npz"]
    for folder in ("a", "b"):
        assert sorted(file.name for file in (tmp_path / folder).iterdir()) == names
    split = Split.load(tmp_path / "a" / "indices.npz")
    assert split.digest == Split.load(tmp_path / "b" / "indices.npz").digest
    written = json.loads((tmp_path / "a" / "distances.json").read_text())
    assert written["digest"] == split.digest
    assert written["client_totals"] == split.counts.sum(axis=1).tolist()
    assert set(written["distances_from_uniform"]) == {"jsd", "emd", "emd_direct", "hellinger"}
    assert written["public"] == 50
    with (tmp_path / "a" / "counts.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header == ["client", *map(str, range(10))]
    assert np.array_equal(np.array(rows, int)[:, 1:], split.counts)


def test_the_picture_names_the_partition_as_it_was_given(tmp_path, monkeypatch):
    titles = []
    monkeypatch.setattr(
        partition, "bubble_plot", lambda counts, path, title, roles: titles.append(title)
    )
    what = ["--dataset", "digits", "--partition", "dir_equal(1.0, size=70)", "--clients", "5"]
    assert call("partition", [*what, "--seed", "2", "--out", str(tmp_path)]) == 0
    assert titles == ["Digits (8x8): dir_equal(1.0, size=70), seed 2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["classes", "1", "2"], "--public-classes = [1, 2]: there is no public set without"),
        (["dataset", "mnist"], "--public-dataset = 'mnist': "),
        (["anchors", "5"], "--public-anchors = 5: "),
        (["overlap"], "--public-overlap = True: there is no public set without --public-size"),
        (["anchors", "5", "--public-size", "50"], "anchors go with images of another data set"),
        (["size", "0"], "public.size = 0"),
    ],
)
def test_an_option_of_a_public_set_is_not_dropped(tmp_path, options, said):
    what = ["--dataset", "digits", "--partition", "iid", "--clients", "5", "--seed", "0"]
    with refused(said):
        call(
            "partition",
            [*what, "--out", str(tmp_path / "x"), f"--public-{options[0]}", *options[1:]],
        )
    assert not (tmp_path / "x").exists()


def test_a_partition_that_leaves_too_few_samples_to_validate_on_is_not_written(tmp_path):
    """As the workflow asks, before anything trains."""
    what = ["--dataset", "digits", "--partition", "dir_client(0.5)", "--clients", "5"]
    out = ["--seed", "0", "--data", str(tmp_path / "prepared"), "--out", str(tmp_path / "x")]
    with refused("training samples; give a train_size of at most 1337"):
        call("partition", [*what, *out, "--validation", "100"])
    assert not (tmp_path / "x").exists()
    assert call("partition", [*what, *out, "--validation", "100", "--train-size", "1337"]) == 0


@pytest.mark.parametrize("missing", ["dataset", "partition", "clients", "seed"])
def test_a_missing_option_is_named_and_help_says_that_it_is_required(capsys, missing):
    given = {"dataset": "digits", "partition": "iid", "clients": "3", "seed": "0"}
    options = [f"--{key}={value}" for key, value in given.items() if key != missing]
    with refused(f"--{missing} is missing; give it, or a file with --spec"):
        call("partition", [*options, "--out", "x"])
    with suppress(SystemExit):
        call("partition", ["--help"])
    help_ = " ".join(capsys.readouterr().out.split())
    of_option = help_.partition(f" --{missing} {missing.upper()} ")[2].partition(" --")[0]
    assert "(required without" in of_option


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seed", "0"], "--seed = 0: --spec has all settings; change them there"),
        (["--train-size", "9"], "--train-size = 9: "),
        (["--public-anchors", "5"], "--public-anchors = 5: "),
        (["--public-overlap"], "--public-overlap = True: "),
    ],
)
def test_an_option_beside_a_file_of_settings_is_not_dropped(tmp_path, options, said):
    (tmp_path / "split.json").write_text("{}")
    with refused(said):
        call("partition", ["--spec", f"{tmp_path}/split.json", "--out", f"{tmp_path}/x", *options])
