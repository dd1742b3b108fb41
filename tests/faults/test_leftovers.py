"""What killed processes left half-written goes when the file is written anew; nobody reads it."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.calls import ROOT, script
from support.many import specs_of, train_many
from support.study import DRAWS, contents

from fedlogit.files import write_atomic, write_json

KILLED = """
import os, signal, sys
from pathlib import Path
from fedlogit.files import write_atomic
with write_atomic(Path("a.json")) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_of_a_file_goes_when_it_is_written(tmp_path):
    subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, check=False, env={"PYTHONPATH": str(ROOT)}
    )
    (left,) = tmp_path.iterdir()
    assert left.read_text() == "half"
    others = [tmp_path / name for name in (".b.123.json", ".a.123.csv", ".a.b.json", ".a.1.b.json")]
    for other in others:
        other.write_text("another's")
    write_json(tmp_path / "a.json", {})
    assert {*tmp_path.iterdir()} == {tmp_path / "a.json", *others}


def test_what_another_is_writing_stays(tmp_path):
    path = tmp_path / "a.json"
    with write_atomic(path) as theirs:
        theirs.write_text("theirs")
        write_json(path, {"ours": True})
        assert theirs.read_text() == "theirs"
    assert path.read_text() == "theirs"
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_that_was_taken_for_a_leftover_before_it_was_locked_is_made_again(
    tmp_path, monkeypatch
):
    lock, path = fcntl.flock, tmp_path / "a.json"

    def late(file, how: int) -> None:
        monkeypatch.setattr("fcntl.flock", lock)
        Path(file.name).unlink()
        lock(file, how)

    monkeypatch.setattr("fcntl.flock", late)
    with write_atomic(path) as temporary:
        temporary.write_text("mine")
        write_json(path, {"another's": True})
        assert temporary.read_text() == "mine"


def test_without_locks_files_are_written_and_no_leftover_is_removed(tmp_path, monkeypatch):
    def refused(*_: object) -> None:
        raise OSError("this file system has no locks")

    left = tmp_path / ".a.123.json"
    left.write_text("half")
    monkeypatch.setattr("fcntl.flock", refused)
    write_json(tmp_path / "a.json", {})
    assert {*tmp_path.iterdir()} == {tmp_path / "a.json", left}


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("report", "results/report/pilot/.quick.123.html"),
        ("summary", "results/tables/pilot/quick/.t.123.md"),
        ("summary", "results/figures/pilot/quick/.f.123.png"),
    ],
)
def test_a_command_that_reads_a_folder_leaves_out_what_is_half_written(
    study, tmp_path, monkeypatch, name, left
):
    shutil.copytree(study, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    before = contents(Path())
    Path(left).write_text("half")
    assert script(*DRAWS[name].split()).returncode == 0
    assert contents(Path()) == before | {Path(left): b"half"}


def test_a_spec_that_is_half_written_is_no_spec(tmp_path):
    specs_of(tmp_path / "specs", {"rounds": 1})
    (tmp_path / "specs/.seed0.123.json").write_text("{")
    done = train_many(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 1 runs are finished" in done.stdout
