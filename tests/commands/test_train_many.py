"""Many runs in one job: the bits of `train`, whoever fails, whenever it stops."""

from __future__ import annotations

import mmap
import os
import re
import resource
import tarfile
import time
from argparse import ArgumentParser

import pytest
import torch
from support.calls import script
from support.many import content, folder_of, specs_of, train_many
from support.refusals import refused

from fedlogit.cli import call
from fedlogit.commands import train_many as command
from fedlogit.commands._many import worker
from fedlogit.commands._many.pool import Limits
from fedlogit.commands._many.selection import selected_runs, selection_options
from fedlogit.commands._many.tasks import Queue, Task
from fedlogit.files import read_json, write_json
from fedlogit.locks import held
from fedlogit.runs import layout
from fedlogit.runs.paths import run_dir
from fedlogit.runs.tensors import read_tensors

pytestmark = pytest.mark.slow  # processes import PyTorch
SAVED = {"export": ["weights"]}
ENDLESS = {"rounds": 100_000}


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_runs_have_the_bits_of_train_however_many_at_a_time(folder, tmp_path_factory):
    changes = [SAVED, SAVED | {"method": "uwa"}, SAVED | {"seed": 1, "method": "fedavg"}]
    specs = specs_of(folder / "specs", *changes)
    other = tmp_path_factory.mktemp("three")
    specs_of(other / "specs", *changes)
    assert train_many(folder).returncode == 0
    assert train_many(other, "--jobs", "3").returncode == 0
    for i, spec in enumerate(specs):
        alone = folder / f"alone{i}"
        write_json(folder / "spec.json", spec.model_dump(mode="json"))
        given = ("--spec", str(folder / "spec.json"), "--out", str(alone), "--data", str(folder))
        assert script("train", *given, "--device", "cpu", "--quiet").returncode == 0
        assert content(folder_of(folder, spec)) == content(folder_of(other, spec)) == content(alone)


def test_a_list_in_one_file_and_runs_that_are_finished(folder):
    one, two = specs_of(folder / "specs", {"rounds": 1}, {"rounds": 1, "seed": 1})
    train_many(folder)
    before = (folder_of(folder, one) / "result.json").stat().st_mtime_ns
    files = sorted((folder / "specs").rglob("*.json"))
    write_json(folder / "list.json", [{"seed": 2}] + [read_json(path) for path in files])
    places = ("--results", str(folder / "results"), "--quiet")
    done = script("train_many", str(folder / "list.json"), *places)
    assert "2 of 3 runs are finished (0 of them now), 1 failed, 0 begun, 0 left\n" in done.stdout
    assert (folder_of(folder, one) / "result.json").stat().st_mtime_ns == before
    assert done.returncode == 2
    assert done.stderr == f"error: {folder / 'list.json'}, entry 0: key 'dataset' is missing\n"
    assert (folder_of(folder, two) / "result.json").exists()


def test_where_all_runs_fail_no_archive_is_written_and_an_older_one_stays(folder):
    specs_of(folder / "specs", {"rounds": 1, "dataset": "mnist"})
    archive = folder / "runs.tar.gz"
    for older in (None, b"of an earlier call"):
        if older:
            archive.write_bytes(older)
        done = train_many(folder, "--archive", str(archive))
        assert done.returncode == 2
        assert "0 of 1 runs are finished (0 of them now), 1 failed" in done.stdout
        assert done.stdout.endswith(f"{archive}: not written, as no run has finished\n")
        assert (archive.read_bytes() if archive.exists() else None) == older


def test_a_finished_run_that_is_damaged_counts_as_failed_and_is_not_packed(folder):
    one, two = specs_of(folder / "specs", {"rounds": 1}, {"rounds": 1, "seed": 1})
    train_many(folder)
    rounds = folder_of(folder, one) / "rounds.csv"
    rounds.write_text(rounds.read_text().replace("0", "1", 1))
    done = train_many(folder, "--archive", str(folder / "runs.tar.gz"))
    assert done.returncode == 2
    assert "1 of 2 runs are finished (0 of them now), 1 failed, 0 begun, 0 left\n" in done.stdout
    assert f"error: {folder_of(folder, one)}: {rounds} is damaged or truncated" in done.stderr
    with tarfile.open(folder / "runs.tar.gz") as archive:
        packed = {name.rpartition("/")[0] for name in archive.getnames()} - {""}
    assert packed == {str(run_dir(two))}


def test_a_log_says_how_many_runs_are_done_and_has_no_bar(folder):
    specs_of(folder / "specs", {"rounds": 1}, {"rounds": 1, "seed": 1})
    places = ("--data", str(folder), "--results", str(folder / "results"), "--device", "cpu")
    done = script("train_many", str(folder / "specs"), *places)
    assert re.search(r"^2 of 2 runs, \d\d:\d\d passed$", done.stderr, re.MULTILINE), done.stderr
    assert "\r" not in done.stderr


def test_one_that_fails_does_not_stop_the_others(folder):
    one_shot = {"rounds": 1, "dataset": "mnist", "partition": "iid", "method": "feddf"}
    changes = [one_shot, one_shot | {"method": "fedhkt"}, {"rounds": 1}]
    *lost, good = specs_of(folder / "specs", *changes)
    (folder / "specs/broken.json").write_text('{"dataset": "digit"}')
    done = train_many(folder)
    assert done.returncode == 2
    assert (folder_of(folder, good) / "result.json").exists()
    said = done.stderr.splitlines()
    assert len(said) == 4, said  # a file, the clients, and the two runs on them
    assert "broken.json" in said[0]
    assert "mnist.npz does not exist; make it with" in said[1]
    assert {line.partition(": its clients failed")[0] for line in said[2:]} == {
        f"error: {folder_of(folder, spec)}" for spec in lost
    }
    assert "1 of 4 runs are finished (1 of them now), 3 failed, 0 begun, 0 left" in done.stdout


def test_a_spec_whose_method_is_not_here_counts_as_failed(folder):
    """As on a machine to which the specs of a method of one's own came without its module."""
    (good,) = specs_of(folder / "specs", {"rounds": 1})
    own = good.model_dump(mode="json") | {"method": "nowhere_to_be_found:TrimmedMean"}
    write_json(folder / "specs/own.json", own)
    done = train_many(folder)
    assert done.returncode == 2
    assert "'nowhere_to_be_found:TrimmedMean' cannot be imported" in done.stderr
    assert "1 of 2 runs are finished (1 of them now), 1 failed, 0 begun, 0 left" in done.stdout
    assert "Next: mend what failed, then the same command again" in done.stdout
    states = (folder / "results/train_many.txt").read_text().splitlines()
    assert states[1] == f"failed    {folder / 'specs/own.json'}"


def test_it_ends_with_a_few_lines_however_many_fail(folder):
    broken = {"rounds": 1, "dataset": "mnist", "partition": "iid", "method": "fedavg"}
    specs_of(folder / "specs", {"rounds": 1}, *(broken | {"seed": seed} for seed in range(7)))
    done = train_many(folder)
    errors = folder / "results/train_many.errors.txt"
    assert done.stderr.splitlines()[5:] == [f"and 2 more: {errors}"]
    assert len(errors.read_text().splitlines()) == 7
    assert len(done.stdout.splitlines()) == 4  # the run that finished says so itself
    states = (folder / "results/train_many.txt").read_text().splitlines()
    assert [line.split()[0] for line in states] == ["finished", *["failed"] * 7]


def stopped_in_time(folder, said, *options):
    """Train until it ends within its minutes and says so, with more on a machine that is busy."""
    for minutes in (0.1, 0.2, 0.4, 0.8):
        begun = time.monotonic()
        done = train_many(folder, "--minutes", str(minutes), "--grace", "2", *options)
        in_time = time.monotonic() - begun < minutes * 60
        assert done.returncode == 0, done.stderr
        if in_time and said in done.stdout:
            return done.stdout
    raise AssertionError(f"not within {minutes} minutes: {done.stdout}")


def test_it_stops_saved_before_the_minutes_are_over_and_goes_on(folder):
    long, later = specs_of(folder / "specs", ENDLESS, ENDLESS | {"seed": 1})
    rounds = []
    for _ in range(2):
        said = stopped_in_time(folder, "signal 15 after round", "--archive", f"{folder}/a.gz")
        assert "0 of 2 runs are finished (0 of them now), 0 failed, 1 begun, 1 left\n" in said
        assert "Next: the same command again" in said
        _, header = read_tensors(folder_of(folder, long) / "checkpoint.safetensors", "checkpoint")
        rounds.append(int(header["note"].partition('"round": ')[2].partition(",")[0]))
    assert rounds[0] < rounds[1]
    assert not folder_of(folder, later).exists()
    assert said.endswith("a.gz: not written, as no run has finished\n")
    assert not (folder / "a.gz").exists()


def test_a_round_that_does_not_end_in_time_is_ended(folder):
    specs_of(folder / "specs", {"rounds": 1, "local": {"epochs": 100_000}})
    stopped_in_time(folder, "0 failed, 0 begun, 1 left")


def test_the_runs_of_a_papers_table_are_planned(folder):
    options = ("--paper", "who_to_trust", "--scale", "smoke", "--artefacts", "table1")
    places = ("--results", str(folder / "results"), "--data", str(folder))
    done = script("train_many", *options, *places, "--device", "cpu", "--minutes", "0.0001")
    assert done.returncode == 0, done.stderr
    listed = (folder / "results/train_many.txt").read_text().splitlines()
    planned = [line.split()[1] for line in listed if line.startswith("left")]
    assert len(planned) > 5
    assert all(run.startswith("digits/") for run in planned)


def test_a_sample_is_the_same_in_each_call_and_part_of_a_larger_one(folder):
    def planned(*options: str) -> list[str]:
        parser = ArgumentParser()
        selection_options(parser)
        table = ("--paper", "who_to_trust", "--scale", "smoke", "--artefacts", "table1")
        return list(selected_runs(parser.parse_args([*table, *options])).runs)

    every = planned()
    some, more = planned("--sample", "3"), planned("--sample", "6")
    assert some == planned("--sample", "3")
    assert len(some) == 3
    assert len(more) == 6
    assert set(some) < set(more) < set(every)
    assert some != every[:3]
    assert planned("--sample", "1000") == every


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "give either files of specs, or --paper and --scale"),
        (("specs", "--paper", "celm", "--scale", "smoke"), "give either files of specs, or --pa"),
        (("--paper", "celm"), "give --paper and --scale together"),
        (
            ("--paper", "celm", "--scale", "smoke", "--artefacts", "table9"),
            "unknown table or figur",
        ),
        (("specs",), "specs does not exist; give a folder or a file of specs"),
        (("specs", "--jobs", "0"), "argument --jobs: 0: give a number from 1 to 1024"),
        (("specs", "--workers", "100000"), "--workers: 100000: give a number from 1 to 1024"),
        (("specs", "--workers", "two"), "argument --workers: invalid count value: 'two'"),
        (("specs", "--minutes", "0"), "argument --minutes: 0: give more than 0"),
        (("specs", "--minutes", "nan"), "argument --minutes: nan: give more than 0"),
        (("specs", "--grace", "inf"), "argument --grace: inf: give more than 0"),
        (("specs", "--checkpoint-seconds", "-1"), "argument --checkpoint-seconds: -1: give 0 or m"),
        (("specs", "--minutes", "1", "--grace", "60"), "grace = 60: give less than the 60 seconds"),
        (("specs", "--archive", ""), "argument --archive: is empty; give a path"),
        (("specs", "--archive", "fedlogit"), "archive = fedlogit is a folder; give the name of a"),
        (
            ("specs", "--archive", "fedlogit/cli.py/a/b.gz"),
            "fedlogit/cli.py is a file; give another",
        ),
        (("specs", "--device", "cuda:7"), "device = 'cuda:7' is not there"),
    ],
)
def test_what_makes_no_sense_is_one_line(options, said):
    with refused(said):
        call("train_many", options)


def test_a_quarter_of_the_grace_is_for_what_comes_after():
    assert Limits.after(1000, 100, 20) == Limits(stop=1080, kill=1095)
    assert command._GRACE == 120


def test_a_task_waits_for_the_one_it_comes_after(tmp_path):
    clients, run, other = (Task(tmp_path / name, ()) for name in "cro")
    on_clients = Task(run.folder, (), after=clients.folder)
    queue = Queue([clients, on_clients, other])
    assert [queue.take(), queue.take(), queue.take()] == [clients, other, None]
    queue.ended(clients)
    assert (queue.take(), bool(queue)) == (on_clients, False)


def test_runs_that_another_process_makes_come_last(tmp_path):
    """Several processes with one list share its runs, and none waits while there are others."""
    first, second = (Task(tmp_path / name, ()) for name in "ab")
    queue = Queue([first, second])
    with held(first.folder / layout.LOCK, ""):
        assert [queue.take(), queue.take(), queue.take()] == [second, first, None]


def test_a_process_holds_one_gpu_for_all_its_tasks(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(worker, "choose_device", torch.device)
    with worker._taken("cuda", 2) as device:
        seen = os.environ["CUDA_VISIBLE_DEVICES"]
    assert (device, seen) == ("cuda:0", "0")  # a name for which `train` looks for no GPU
    with worker._taken("cpu", 2) as device:
        assert device == "cpu"


def test_before_cuda_has_begun_there_is_nothing_to_forget():
    """As before a process's first task: PyTorch refuses to count memory anew then."""
    if torch.cuda.is_initialized():
        pytest.skip("another test has begun CUDA in this process")
    worker._forget("cuda:0")


def test_the_peak_of_memory_is_a_tasks_own():
    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    size = 300_000_000
    with mmap.mmap(-1, size) as held:  # which the system gets back at once, unlike what malloc has
        held.write(b"x" * size)
        before = peak()
    worker._forget("cpu")
    assert peak() < before - size / 2
