"""Results that can be read but not written; two processes at one run; clocks that went wrong."""

import datetime
import itertools
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from support.refusals import refused
from support.small import SMALL, small_spec
from support.waiting import heard

from fedlogit.cli import call, run_main
from fedlogit.errors import FedlogitError
from fedlogit.files import read_json, write_atomic, write_json
from fedlogit.papers import expand, load_paper, run_dir
from fedlogit.results.runs.run import read_run
from fedlogit.runs.run import run_lock

ROOT = Path(__file__).resolve().parents[2]
YEARS = 365 * 24 * 3600


def arguments(tmp_path: Path, out: Path) -> list[str]:
    write_json(tmp_path / "spec.json", SMALL)
    return [
        "--spec", str(tmp_path / "spec.json"), "--out", str(out), "--data", str(tmp_path),
        "--device", "cpu", "--workers", "1", "--quiet",
    ]  # fmt: skip


@pytest.fixture
def read_only(tmp_path):
    """Return a function that makes a folder read-only, also for root."""
    mounted = []

    def make(folder: Path) -> None:
        for command in (["--bind", folder, folder], ["-o", "remount,bind,ro", folder]):
            done = subprocess.run(["mount", *command], check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"cannot mount here: {done.stderr.strip()}")
            mounted[:] = [folder]

    yield make
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_read_only_results(train, read_only, tmp_path, capsys, monkeypatch):
    results = tmp_path / "results"
    train(results / "finished")
    (results / "begun").mkdir()
    read_only(results)
    call("train", arguments(tmp_path, results / "finished"))
    assert "is finished" in capsys.readouterr().out
    assert not read_run(results / "finished", small_spec().digest()).diverged

    monkeypatch.setattr(sys, "argv", ["train.py", *arguments(tmp_path, results / "begun")])
    with pytest.raises(SystemExit) as left:
        run_main(partial(call, "train"))
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: cannot write {results / 'begun'}")
    assert said.count("\n") == 1
    assert "Read-only file system" in said


def test_the_second_of_two_waits_and_finds_the_run_finished(tmp_path, capsys):
    folder = tmp_path / "run"
    order = []

    def second() -> None:
        with run_lock(folder) as missing:
            order.append(("second", missing))

    with run_lock(folder) as missing:
        assert missing
        other = threading.Thread(target=second)  # a lock is of a file's handle, not of a process
        other.start()
        heard(capsys, f"another process makes {folder}")
        order.append(("first", missing))
        write_json(folder / "result.json", {})
    other.join(10)
    assert order == [("first", True), ("second", False)]
    assert [p.name for p in folder.iterdir()] == ["result.json"]


def test_a_failed_run_leaves_no_empty_folder(tmp_path):
    with pytest.raises(FedlogitError), run_lock(tmp_path / "run"):
        raise FedlogitError("no data")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("years", [-40, 40])
def test_a_clock_that_jumps_does_not_matter_to_a_run(train, tmp_path, monkeypatch, years):
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + years * YEARS)
    folder = train(tmp_path / "run", every=0)
    for path in (folder / "spec.json", folder / "rounds.csv"):
        os.utime(path, (0, 0))
    os.utime(folder / "result.json", (clock() + years * YEARS,) * 2)
    run = read_run(folder, small_spec().digest())
    assert list(run.rounds["round"]) == [1, 2, 3]


def test_a_clock_that_goes_backwards_does_not_matter_to_a_run(train, tmp_path, monkeypatch):
    """Whenever it is asked, it is an hour earlier than the time before."""
    now = itertools.count(time.time(), -3600.0)
    asked = []

    def clock() -> float:
        asked.append(next(now))
        return asked[-1]

    class Backwards(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(clock(), tz)

    whole = train(tmp_path / "whole")
    monkeypatch.setattr(time, "time", clock)
    monkeypatch.setattr("fedlogit.runs.provenance.datetime.datetime", Backwards)
    folder = train(tmp_path / "run", every=0)
    assert len(asked) >= 2
    assert asked == sorted(asked, reverse=True)
    told = read_json(folder / "result.json")["provenance"]
    assert told["finished"] < told["started"]
    assert told["wall_seconds"] > 0
    one, other = (read_run(path, small_spec().digest()) for path in (whole, folder))
    assert one.result.final == other.result.final
    times = iter(range(1_700_000_000, 0, -3600))
    for name in ("spec.json", "rounds.csv", "result.json"):  # what is written last looks oldest
        os.utime(folder / name, (next(times),) * 2)
    assert read_run(folder, small_spec().digest()).rounds.equals(other.rounds)


def test_a_file_that_is_written_twice_between_two_ticks_of_the_clock_is_read_again(train):
    folder = train()
    read_run(folder, small_spec().digest())
    path = folder / "rounds.csv"
    before, content = path.stat(), path.read_bytes()
    with write_atomic(path) as temporary:
        temporary.write_bytes(content.replace(b"0", b"1", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with refused(f"{path} is damaged"):
        read_run(folder, small_spec().digest())


def test_snakemake_counts_a_run_whatever_its_time(python, tmp_path):
    """One run is from 1986 and one from the future: neither is trained again."""
    artefact = expand(load_paper("tally_train", ROOT / "workflow/papers"), "smoke")[0]
    runs = sorted({str(run_dir(cell.spec)) for cell in artefact.cells})[:2]
    goals = [f"results/runs/{run}/result.json" for run in runs]
    for goal, years in zip(goals, (-40, 40), strict=True):
        write_json(tmp_path / goal, {})
        os.utime(tmp_path / goal, (time.time() + years * YEARS,) * 2)
    command = [
        str(python),
        "-m",
        "snakemake",
        "--directory",
        str(tmp_path),
        "--cores",
        "1",
        "-n",
    ]
    settings = ["--config", "papers=[tally_train]", "scale=smoke", "--"]
    done = subprocess.run(
        [*command, *settings, *goals], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing to be done" in done.stdout + done.stderr
