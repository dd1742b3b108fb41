"""Commands that write results are stopped at their worst moment: a file is written, not renamed.

What was there stays as it was, and the same call makes all and tidies up.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support.calls import ROOT, RUNS
from support.study import DRAWS, contents

pytestmark = pytest.mark.slow
# Sends itself a signal when it has flushed a file for the nth time; never, if n is 0.
DRIVER = """
import os, signal, sys
from fedlogit.cli import main, run_main

number, left = int(sys.argv.pop(1)), int(sys.argv.pop(1))
flush = os.fsync

def stopping(file):
    global left
    flush(file)
    left -= 1
    if not left:
        os.kill(os.getpid(), number)

os.fsync = stopping
run_main(main)
"""
ENDS = {
    signal.SIGINT: (130, "interrupted; run the same command again to resume\n"),
    signal.SIGTERM: (143, "stopped by SIGTERM; run the same command again to resume\n"),
    signal.SIGKILL: (-9 % 256, ""),
}
MOMENTS = {"redraw": 5, "compare": 1, "record": 2, "summary": 1, "page": 1, "report": 1}


@pytest.fixture
def stopped(python, tmp_path):
    """Return a function that calls a command, which a signal stops at the nth file, in a folder."""
    (tmp_path / "driver.py").write_text(DRIVER)

    def call(
        folder: Path, command: str, number: int = 0, moment: int = 0
    ) -> subprocess.CompletedProcess[str]:
        given = (python, tmp_path / "driver.py", number, moment, *command.split())
        return subprocess.run(
            list(map(str, given)), cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)},
            check=False, capture_output=True, text=True,
        )  # fmt: skip

    return call


def half_written(folder: Path, before: dict[Path, bytes]) -> list[Path]:
    return [path for path in contents(folder) if path not in before]


@pytest.mark.parametrize("number", ENDS, ids=lambda number: number.name)
@pytest.mark.parametrize("name", DRAWS)
def test_what_was_there_stays_and_the_same_call_makes_all(study, stopped, tmp_path, name, number):
    folder = tmp_path / "study"
    shutil.copytree(study, folder)
    before = contents(folder)
    done = stopped(folder, DRAWS[name], number, MOMENTS[name])
    assert (done.returncode, done.stderr) == ENDS[number]
    left = half_written(folder, before)
    assert all(path.name.startswith(".") for path in left)
    assert bool(left) == (number == signal.SIGKILL)
    assert contents(folder).items() >= before.items()
    again = stopped(folder, DRAWS[name])
    assert (again.returncode, again.stderr) == (0, "")
    assert contents(folder) == before


@pytest.mark.parametrize("number", ENDS, ids=lambda number: number.name)
def test_a_publish_that_is_stopped_lists_nothing_and_the_next_one_all(published, stopped, number):
    """When all is pushed and only the list remains to be written."""
    folder, listing = Path.cwd(), RUNS.with_suffix(".dvc")
    shutil.rmtree(".dvc/cache")
    shutil.rmtree("dvc-remote")
    whole = listing.read_bytes()
    listing.unlink()
    done = stopped(folder, "publish", number, 2)
    assert (done.returncode, done.stderr) == ENDS[number]
    assert not listing.exists()
    again = stopped(folder, "publish")
    assert (again.returncode, again.stderr) == (0, "")
    assert listing.read_bytes() == whole
    assert [path.name for path in listing.parent.iterdir()] in (
        ["runs", "runs.dvc"],
        ["runs.dvc", "runs"],
    )
