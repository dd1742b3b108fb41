"""What is said of a step that failed, and whether another try could mend it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fedlogit.workflow.step_errors import error_in, failure, no_such_target

ROOT = Path(__file__).resolve().parents[2]
TRACEBACK = (
    "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nKeyError: 'a'\n"
    "error: KeyError: 'a' (unexpected; where is above)\n"
)


@pytest.fixture
def log(tmp_path):
    def write(text: str) -> str:
        (tmp_path / "run.log").write_text(text)
        return str(tmp_path / "run.log")

    return write


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "warning: slow\nerror: lr = -1: should be positive\n",
            "error: lr = -1: should be positive",
        ),
        (TRACEBACK, "error: KeyError: 'a' (unexpected; where is above)"),
        ("stopped by signal 15 after round 3\n", None),
        ("round 3: 40%\nKilled\n", None),
        ("native.cpp:3: error: no such type\n", None),
        ("Traceback (most recent call last):\nMemoryError\n", None),
        ("", None),
    ],
)
def test_an_error_that_would_come_again_is_told_from_being_stopped(log, text, error):
    assert error_in([log(text)]) == error


def test_a_log_that_was_never_written_has_no_error(tmp_path):
    assert error_in([str(tmp_path / "none.log")]) is None


def test_a_failed_step_is_one_line_with_its_file_its_log_and_its_error(log):
    path = log(TRACEBACK)
    said = failure(["results/runs/a/result.json"], [path])
    assert said == (
        f"failed: results/runs/a/result.json ({path}): KeyError: 'a' (unexpected; where is above)"
    )
    log("a\nstopped by signal 15\n\n")
    assert failure(["x"], [path]) == f"failed: x ({path}): stopped by signal 15"
    assert failure(["x"], []) == "failed: x (no log): it said nothing"


def test_a_target_that_no_rule_makes_has_the_nearest_rule_or_pattern():
    known = ["tally_train", "celm", "results/figures/{paper}/{scale}/{id}.png"]
    assert "'tally_trian'; did you mean 'tally_train'?" in no_such_target("tally_trian", known)
    said = no_such_target("results/figurs/celm/paper/figure2.png", known)
    assert "did you mean 'results/figures/{paper}/{scale}/{id}.png'?" in said
    assert (
        no_such_target("zzz", known) == "no rule makes 'zzz' (config/README.md lists the targets)"
    )


def test_a_target_that_is_a_paper_which_was_not_chosen_says_how_to_choose_it():
    said = no_such_target("study", ["celm", "studies"], others=["study"])
    assert said == (
        "no rule makes 'study', for it is not among config.yaml's 'papers'; add it there, or give"
        " --config 'papers=[study]'"
    )


def test_of_a_path_only_what_is_in_its_folder_is_near():
    known = ["tally_train", "results/record.csv", "results/report/{paper}/{scale}.html"]
    known += [f"results/figures/{{paper}}/{{scale}}/{{id}}.{suffix}" for suffix in ("md", "png")]
    said = no_such_target("results/figures/celm/smoke/figure2.svg", known)
    assert "did you mean 'results/figures/{paper}/{scale}/{id}." in said
    assert "did you mean 'results/record.csv'?" in no_such_target("results/recrd.csv", known)
    assert "did you mean" not in no_such_target("results/elsewhere/celm/smoke.txt", known)


@pytest.mark.parametrize("target", ["train", "results/runs/a/b/c/seed0-00000000/result.json"])
def test_that_frozen_leaves_out_what_trains_is_said(target):
    known = ["tally_train", "results/record.csv"]
    said = no_such_target(target, known)
    assert said == f"no rule makes {target!r}: frozen = true leaves out the rules that train"
    known = ["results/runs/{run}/result.json"]
    said = no_such_target("results/runs/a/reslt.json", known)
    assert said.startswith(
        "no rule makes 'results/runs/a/reslt.json'; did you mean 'results/runs/{"
    )


@pytest.mark.parametrize(
    ("raised", "last"),
    [
        ("KeyError('a')", "error: KeyError: 'a' (unexpected, <string> line 2; where is above)"),
        (
            "StopIteration(__import__('fractions').Fraction('c'))",
            "error: ValueError: Invalid"
            " literal for Fraction: 'c' (unexpected, <string> line 2; where is above)",
        ),
        ("MemoryError()", "MemoryError"),
    ],
)
def test_a_program_ends_with_a_line_that_says_whether_another_try_is_worth_it(raised, last):
    code = f"from fedlogit.cli import run_main\ndef f(argv): raise {raised}\nrun_main(f)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.splitlines()[-1] == last


def test_a_signal_is_no_error_that_would_come_again(log):
    code = (
        "import os, signal\nfrom fedlogit.cli import run_main\n"
        "run_main(lambda argv: os.kill(os.getpid(), signal.SIGTERM))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert error_in([log(done.stderr)]) is None
