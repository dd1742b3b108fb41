"""SIGKILL at random moments: the same command goes on, to the same bits, and leaves nothing behind.

A run is killed more than twenty times; a process that has imported PyTorch forks each attempt, so
that kills hit training and writing and not imports. Snakemake, with all it started, is killed more
than twenty times, as by power cuts; and once alone.
"""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path

import pytest
import torch
from support.outcomes import exported_weights, untimed_rows
from support.small import small_spec
from support.waiting import until

from fedlogit.files import read_json, write_json
from fedlogit.locks import held
from fedlogit.papers import expand, load_paper, run_dir

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
CHANGES = {"rounds": 12, "method": "uwa", "export": ["weights", "aggregation"]}


def attempt(folder: Path) -> None:
    """Train a run, or go on with it; in a process of its own."""
    from fedlogit import methods
    from fedlogit.data import load
    from fedlogit.runs.context import RunOptions
    from fedlogit.runs.run import run, run_lock
    from fedlogit.runs.setup import divide

    spec = small_spec(**CHANGES)
    data = load("digits", folder)
    with run_lock(folder) as missing:
        if missing:
            options = RunOptions(torch.device("cpu"), checkpoint_seconds=0, progress=False)
            run(spec, methods.get(spec.method), data, divide(spec, data), folder, options)


def content(folder: Path) -> dict[str, object]:
    """Return all that a run left but times: files, weights, rounds, final metrics."""
    result = read_json(folder / "result.json")
    return {
        "files": sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()),
        "weights": {
            name: tensor.numpy().tobytes() for name, tensor in exported_weights(folder).items()
        },
        "rows": untimed_rows(folder),
        "result": {key: result[key] for key in ("status", "final", "split", "bytes")},
    }


def test_killed_twenty_times(tmp_path):
    forkserver._forkserver._stop()  # that of another test, which has imported other modules
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sklearn.datasets", "fedlogit.runs.run", "test_kill"])

    def start(folder: Path):
        process = context.Process(target=attempt, args=(folder,))
        process.start()
        return process

    start(tmp_path / "first").join()  # which also starts the parent of all
    begun = time.monotonic()
    start(tmp_path / "whole").join()
    length = time.monotonic() - begun
    whole = content(tmp_path / "whole")

    moments = random.Random(0)
    kills, resumed, finished, folder = 0, 0, 0, tmp_path / "0"
    while kills < 20 or not (folder / "result.json").exists():
        if (folder / "result.json").exists():
            finished += 1
            start(folder).join()  # which has nothing to do but to tidy up
            assert content(folder) == whole
            folder = tmp_path / str(finished)
        resumed += (folder / "checkpoint.safetensors").exists()
        process = start(folder)
        # After twenty kills the last run may end.
        process.join(moments.uniform(0, length) if kills < 20 else 120)
        if process.exitcode is None:
            process.kill()
            process.join()
            kills += 1
    start(folder).join()  # the last kill may have come after the result, but before its lock went
    assert content(folder) == whole
    assert (kills, resumed > 0) == (20, True)


@pytest.fixture(scope="module")
def target() -> tuple[str, dict]:
    """A run of the smallest paper, and its spec."""
    paper = load_paper("tally_train", ROOT / "workflow" / "papers")
    spec = expand(paper, "smoke")[0].cells[0].spec
    return f"results/runs/{run_dir(spec)}", spec.model_dump(mode="json")


def snakemake(
    folder: Path, *args: str, python: Path | str = sys.executable
) -> subprocess.Popen[str]:
    command = [str(python), "-m", "snakemake", "--directory", str(folder), "--cores", "1"]
    settings = ["papers=[tally_train]", "scale=smoke", "device=cpu", "checkpoint_seconds=0"]
    return subprocess.Popen(
        [*command, *args, "--config", *settings], cwd=ROOT, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_snakemake_killed_and_two_at_once(python, tmp_path, target):
    run, spec = target
    result, lock = tmp_path / run / "result.json", tmp_path / run / ".lock"
    goal = str(result.relative_to(tmp_path))
    locks = tmp_path / ".snakemake" / "locks"

    first = snakemake(tmp_path, goal)
    until(lambda: any(locks.glob("*")), process=first)
    os.killpg(first.pid, signal.SIGSTOP)  # so that it is still at it when the second looks
    second = snakemake(tmp_path, goal, python=python)
    said, _ = second.communicate(timeout=120)
    assert first.poll() is None
    assert second.returncode == 1
    assert "LockException" in said or "cannot be locked" in said, said
    os.killpg(first.pid, signal.SIGCONT)

    until(lambda: lock.exists() or result.exists(), process=first)
    first.kill()  # alone: its training goes on
    first.wait()
    first.stdout.close()
    last = snakemake(tmp_path, "--nolock", "--rerun-incomplete", goal, python=python)
    said, _ = last.communicate(timeout=240)
    assert last.returncode == 0, said

    write_json(tmp_path / "spec.json", spec)
    again = subprocess.run(
        [str(python), str(ROOT / "scripts/train.py"), "--spec", str(tmp_path / "spec.json"),
         "--out", str(tmp_path / "again"), "--device", "cpu", "--quiet"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    one, other = read_json(result), read_json(tmp_path / "again" / "result.json")
    assert one["final"] == other["final"]
    assert one["bytes"] == other["bytes"]
    assert not lock.exists()
    assert not list(result.parent.glob("checkpoint*"))


def test_snakemakes_own_lock_stays_after_a_kill_until_it_is_unlocked(python, tmp_path, target):
    goal, locks = f"{target[0]}/result.json", tmp_path / ".snakemake" / "locks"
    first = snakemake(tmp_path, goal)
    until(lambda: any(locks.glob("*")), process=first)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    again = snakemake(tmp_path, goal, python=python)
    said, _ = again.communicate(timeout=120)
    assert again.returncode == 1
    assert "cannot be locked" in said
    for arguments in (["--unlock"], ["--dry-run", goal]):
        ends_well(snakemake(tmp_path, *arguments, python=python))


def test_snakemake_killed_twenty_times(python, tmp_path, target):
    """At moments spread over its start, its run and its end, with all that it started."""
    run, _ = target
    goal = f"{run}/result.json"

    def start(folder: Path) -> subprocess.Popen[str]:
        folder.mkdir(exist_ok=True)
        return snakemake(folder, "--nolock", "--rerun-incomplete", goal, python=python)

    start(tmp_path / "first").communicate(timeout=240)  # after which all files are in memory
    begun = time.monotonic()
    ends_well(start(tmp_path / "whole"))
    length = time.monotonic() - begun
    whole = read_json(tmp_path / "whole" / goal)

    moments = random.Random(2)
    kills, finished, folder = 0, 0, tmp_path / "0"
    while kills < 20:
        fresh, begun = not folder.exists(), time.monotonic()
        process = start(folder)
        try:
            process.wait(length * (kills % 5 + moments.random()) / 5)  # each fifth alike
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        ends_well(process)
        assert same(read_json(folder / goal), whole)
        if fresh:  # the machine may have been busier when the length was taken
            length = min(length, time.monotonic() - begun)
        finished += 1
        folder = tmp_path / str(finished)
    ends_well(start(folder))
    assert same(read_json(folder / goal), whole)
    assert not (folder / run / ".lock").exists()
    assert not list((folder / run).glob("checkpoint*"))


def ends_well(process: subprocess.Popen[str]) -> None:
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said


def same(one: dict, other: dict) -> bool:
    return all(one[key] == other[key] for key in ("status", "final", "split", "bytes"))


def living(session: int) -> list[str]:
    """Return the processes of a session that have not ended; what nobody reaped has."""
    listed = subprocess.run(
        ["ps", "-s", str(session), "-o", "stat=,args="], check=False, capture_output=True, text=True
    )
    return [line for line in listed.stdout.splitlines() if not line.startswith("Z")]


def test_a_second_ctrl_c_stops_snakemake_without_a_traceback(python, tmp_path, target):
    """While a job waits for a run that another process (this one) makes, so that it cannot end."""
    run, _ = target
    goal, lock = f"{run}/result.json", tmp_path / run / ".lock"
    lock.parent.mkdir(parents=True)

    def said_in(folder: str, text: str) -> Callable[[], bool]:
        logs = tmp_path / folder
        return lambda: any(text in path.read_text() for path in logs.rglob("*.log"))

    with held(lock, "not said: nobody else makes it"):
        first = snakemake(tmp_path, goal)
        until(said_in("logs", "waiting for it to end"), process=first)
        os.killpg(first.pid, signal.SIGINT)
        # Before it says so, a second one interrupts Snakemake wherever it is.
        stops = said_in(".snakemake/log", "Terminating processes")
        until(lambda: stops() or first.poll() is not None)
        with suppress(ProcessLookupError):  # where it has ended already
            os.killpg(first.pid, signal.SIGINT)
        said, _ = first.communicate(timeout=60)
    assert first.returncode == 1, said
    assert "Traceback" not in said, said
    assert not list((tmp_path / ".snakemake/locks").glob("*"))
    until(lambda: not living(first.pid), "`tee` ends after what it listened to")
    ends_well(snakemake(tmp_path, goal, python=python))
