"""The list of published runs may be anybody's: no entry decides which files are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.calls import script
from support.refusals import refused

from fedlogit.commands._cache import read_listing
from fedlogit.files import is_plain_name

RUN = "runs/digits/iid/average/seed0-01234567"
HONEST = {"path": RUN, "md5": f"{'0' * 32}.dir", "size": 1, "nfiles": 3, "hash": "md5"}


def write(folder: Path, *outs: Any) -> Path:
    """Write a list with an honest entry before those given."""
    path = folder / "results/runs.dvc"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump({"outs": [HONEST | {"path": f"{RUN[:-1]}8"}, *outs]}))
    return path


def test_an_honest_list_is_read(tmp_path):
    assert [*read_listing(write(tmp_path, HONEST))] == [f"{RUN[5:-1]}8", RUN[5:]]


@pytest.mark.parametrize(
    "path",
    [
        "runs/../../../h_evil/planted",
        "runs//tmp/fedlogit-planted",
        "runs/../../sitecustomize",
        "/tmp/fedlogit-planted",
        "runs",
        "runs/.",
        "runs/",
        "../a/b/c/seed0-01234567",
        "runs/a/../c/seed0-01234567",
        "runs/a/./c/seed0-01234567",
        "runs/a//c/seed0-01234567",
        "runs/a/.hidden/c/seed0-01234567",
        "runs/a\\b/b/c/seed0-01234567",
        "runs/a\0b/b/c/seed0-01234567",
        "runs/a\n/b/c/seed0-01234567",
        f"runs/{'a' * 300}/b/c/seed0-01234567",
        "runs/a/b/c/seed0-0123456",
        "runs/a/b/c/seed0-01234567\n",
        "runs/a/b/c/seed0-01234567/exports",
        "runs/b/c/seed0-01234567",
        f"other{RUN[4:]}",
        5,
        None,
    ],
)
@pytest.mark.parametrize("name", ["pull", "cached"])
def test_a_path_that_is_none_of_a_run_is_refused_before_anything_is_written(
    tmp_path, monkeypatch, path, name
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, HONEST | {"path": path})
    done = script(name)
    assert done.returncode == 2
    assert done.stderr.startswith("error: results/runs.dvc: outs, entry 2: path is ")
    assert "should be runs/DATASET/PARTITION/METHOD/seedN-HASH" in done.stderr
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 400
    assert [p.name for p in tmp_path.rglob("*")] == ["results", "runs.dvc"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"size": None}, "size is None, should be a number of bytes"),
        ({"size": "x"}, "size is 'x', should be a number of bytes"),
        ({"size": True}, "size is True, should be a number of bytes"),
        ({"size": -1}, "size is -1, should be a number of bytes"),
        ({"md5": "../../../etc/passwd"}, "md5 is '../../../etc/passwd', should be 32 hexadecimal"),
        ({"md5": 5}, "md5 is 5, should be 32 hexadecimal digits and .dir"),
    ],
)
def test_a_size_or_digest_that_is_none_is_refused(tmp_path, changes, said):
    with refused(f"runs.dvc: outs, entry 2: {said}"):
        read_listing(write(tmp_path, HONEST | changes))


@pytest.mark.parametrize("key", ["path", "md5", "size"])
def test_an_entry_without_a_key_is_refused(tmp_path, key):
    with refused(f"entry 2: {key} is missing"):
        read_listing(write(tmp_path, {k: v for k, v in HONEST.items() if k != key}))


def test_a_run_that_is_listed_twice_and_an_entry_that_is_none_are_refused(tmp_path):
    path = write(tmp_path, HONEST, HONEST)
    with refused(f"entry 3: {RUN[5:]} is listed twice"):
        read_listing(path)
    path.write_text("outs: [7]\n")
    with refused("entry 1: 7 is no output of DVC"):
        read_listing(path)


@pytest.mark.parametrize("text", ["outs: {a: 1}\n", "outs: 5\n", "", "[]", "<<<<<<< HEAD\n", "\0"])
def test_what_is_no_list_is_refused(tmp_path, text):
    path = tmp_path / "runs.dvc"
    path.write_text(text)
    with refused("runs.dvc is not a list of DVC's outputs"):
        read_listing(path)


@pytest.mark.parametrize("part", ["", ".", "..", "a\0b", "a\nb", "\ud800", "ä" * 128])
def test_a_name_of_a_file_that_is_none_is_refused(part):
    assert not is_plain_name(part)
    assert is_plain_name("rounds.csv")
