"""Many runs in one job, asked to stop or killed: saved, gone on with, and to the same bits."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.calls import ROOT
from support.many import content, folder_of, specs_of, train_many
from support.waiting import until

from fedlogit.commands._many.worker import Outcome, _answer
from fedlogit.stopping import exit_on_signal

pytestmark = pytest.mark.slow
LONG = {"rounds": 60, "method": "uwa", "export": ["weights"]}
ONE_SHOT = {"rounds": 1, "method": "feddf", "local": {"epochs": 3000}}


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts the command in a process group of its own, as a shell does."""
    started: list[subprocess.Popen[str]] = []

    def go(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "fedlogit", "train_many", str(tmp_path / "specs")]
        places = ["--data", str(tmp_path), "--results", str(tmp_path / "results")]
        saving = ["--device", "cpu", "--quiet", "--checkpoint-seconds", "0"]
        process = subprocess.Popen(
            [*command, *places, *saving, *options], cwd=tmp_path, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield go
    for process in started:
        with process, suppress(ProcessLookupError):  # all have ended, unless a test failed
            os.killpg(process.pid, signal.SIGKILL)


def processes(folder: Path) -> list[int]:
    """Return the processes whose command names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if path.readlink() == folder:
                found.append(int(path.parent.name))
        except OSError:  # it has just ended
            continue
    return found


def parts(folder: Path) -> list[Path]:
    """Return the files of the clients that are trained, of those of a one-shot run."""
    return list(folder.glob("results/clients/*/*/*/*/part-*.safetensors"))


def checkpoints(folder: Path) -> list[Path]:
    return list(folder.glob("results/runs/*/*/*/*/checkpoint.safetensors"))


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGTERM, False), (signal.SIGUSR1, True), (signal.SIGINT, True)],
)
def test_asked_to_stop_all_save_and_the_code_is_the_signals(start, tmp_path, number, whole_group):
    specs_of(tmp_path / "specs", LONG | {"rounds": 100_000}, LONG | {"rounds": 99_999}, LONG)
    process = start("--jobs", "2")
    until(lambda: len(checkpoints(tmp_path)) == 2)
    (os.killpg if whole_group else os.kill)(process.pid, number)
    said, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (128 + number, "")
    assert said.count("; the same command goes on\n") == 2  # of each run that was stopped
    assert said.endswith("Next: the same command again; what has finished is not repeated\n")
    assert "0 of 3 runs are finished (0 of them now), 0 failed, 2 begun, 1 left" in said
    assert not processes(tmp_path)


def test_a_second_ctrl_c_does_not_wait_for_the_round(start, tmp_path):
    specs_of(tmp_path / "specs", {"local": {"first_epochs": 1, "epochs": 10**6}})
    process = start()
    until(lambda: checkpoints(tmp_path))  # after which the second round never ends
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=20)
    if process.poll() is None:  # two that came while it waited for a core are one
        process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
    assert "0 failed, 1 begun, 0 left" in said


def test_killed_outright_the_runs_save_themselves_and_go_on_to_the_same_bits(start, tmp_path):
    (spec,) = specs_of(tmp_path / "specs", LONG)
    (tmp_path / "whole").mkdir()
    specs_of(tmp_path / "whole/specs", LONG)
    assert train_many(tmp_path / "whole").returncode == 0
    result = folder_of(tmp_path, spec) / "result.json"
    for _ in range(5):  # on a busy machine a run may be over before it is killed
        process = start()
        until(lambda: checkpoints(tmp_path) or result.exists())
        process.kill()
        process.communicate()
        until(lambda: not processes(tmp_path))  # nobody goes on alone
        if not result.exists():
            break
        shutil.rmtree(tmp_path / "results")
    assert checkpoints(tmp_path)
    assert train_many(tmp_path).returncode == 0
    assert content(folder_of(tmp_path, spec)) == content(folder_of(tmp_path / "whole", spec))


def test_a_run_whose_process_is_killed_fails_alone(start, tmp_path):
    long, short = specs_of(tmp_path / "specs", LONG | {"rounds": 100_000}, {"rounds": 1})
    process = start("--jobs", "2")
    held = folder_of(tmp_path, long)
    until(lambda: checkpoints(tmp_path) and (folder_of(tmp_path, short) / "result.json").exists())
    os.kill(holder(held / ".lock"), signal.SIGKILL)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors == f"error: {held}: its process ended with signal 9; the same command goes on\n"
    assert "1 of 2 runs are finished (1 of them now), 1 failed, 0 begun, 0 left" in said


def test_runs_on_clients_whose_process_was_stopped_do_not_wait_for_ever(start, tmp_path):
    (spec,) = specs_of(tmp_path / "specs", ONE_SHOT)
    process = start()
    until(lambda: parts(tmp_path))
    (lock,) = tmp_path.glob("results/clients/*/*/*/*/.lock")
    os.kill(holder(lock), signal.SIGTERM)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 2, said
    clients, run = errors.splitlines()
    assert clients.endswith("its process was asked to stop; the same command goes on")
    assert run.startswith(f"error: {folder_of(tmp_path, spec)}: its clients failed (")
    assert "1 failed" in said


def holder(lock: Path) -> int:
    """Return the process that has a file open: not, for a moment, one that it is just starting."""
    for path in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if path.readlink() == lock:
                return int(path.parent.parent.name)
        except OSError:
            continue
    raise AssertionError(f"nobody holds {lock}")


def test_clients_that_were_killed_go_on_with_those_that_were_trained(start, tmp_path):
    (spec,) = specs_of(tmp_path / "specs", ONE_SHOT)
    process = start()
    until(lambda: parts(tmp_path))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not processes(tmp_path))
    (first,) = {path.name for path in parts(tmp_path)} & {"part-0.safetensors"}
    before = next(path for path in parts(tmp_path) if path.name == first).stat().st_mtime_ns
    process = start("--minutes", "0.15", "--grace", "2")
    assert "1 begun, 0 left" in process.communicate()[0]
    after = next(path for path in parts(tmp_path) if path.name == first).stat().st_mtime_ns
    assert (before, (folder_of(tmp_path, spec) / "result.json").exists()) == (after, False)


@pytest.mark.parametrize("sends", [False, True], ids=["before", "while"])
def test_a_second_signal_does_not_cost_the_answer_to_the_first(sends):
    """A whole group gets the signal, and who sends tasks then asks each of its processes, too."""
    outcome, sent = Outcome("saved", stopped=True), []

    def stopped(_task: str, said: io.StringIO) -> Outcome:
        said.write("saved")
        if not sends:
            signal.raise_signal(signal.SIGTERM)
        return outcome

    class Interrupted:
        def recv(self) -> str:
            if sent:
                raise EOFError
            return "a task"

        def send(self, answer: Outcome) -> None:
            if sends:
                signal.raise_signal(signal.SIGTERM)
            sent.append(answer)

    with exit_on_signal():
        _answer(Interrupted(), stopped)
    assert sent == [outcome]
