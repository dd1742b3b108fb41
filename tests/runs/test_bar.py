"""The bar of a run says how far it is, and how old the accuracy is that it shows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.small import small_spec

from fedlogit.runs import progress
from fedlogit.runs.progress import RoundProgress, counter


@pytest.fixture
def terminal(monkeypatch):
    screen = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=screen))


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """Stand in for the clock; `now` is what it shows."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_an_accuracy_stands_with_the_round_in_which_it_was_measured(capsys, terminal):
    bar = RoundProgress(small_spec(rounds=4), show=True)
    tested, not_tested = {"round": 1, "accuracy": 0.5}, {"round": 2}
    bar.rounds([tested])
    bar.rounds([tested, not_tested])
    bar.stage()
    bar.close()
    said = capsys.readouterr().err.rpartition("\r")[2]
    assert "2/4" in said
    assert "accuracy 0.5000 in round 1, 1 client stages" in said


def test_without_a_test_there_is_no_accuracy(capsys, terminal):
    bar = RoundProgress(small_spec(rounds=4), show=True)
    bar.rounds([{"round": 1}])
    bar.close()
    assert "accuracy" not in capsys.readouterr().err


def test_a_log_gets_a_line_a_minute_and_one_at_the_end(capsys, clock):
    runs = counter(4, "run", done=1)
    said = []
    for clock.now in (10.0, 70.0, 80.0):
        runs.update()
        said.append(capsys.readouterr().err)
    # Two runs in 70 s leave 35 s for the third; the one that was done before took none of them.
    assert said == [
        "",
        "3 of 4 runs, 01:10 passed, about 00:35 left\n",
        "4 of 4 runs, 01:20 passed\n",
    ]


def test_a_logs_line_names_the_run_and_says_how_far_a_long_round_is(capsys, clock):
    bar = RoundProgress(small_spec(rounds=4), show=True)
    bar.rounds([{"round": 1, "accuracy": 0.5}])  # from a checkpoint
    clock.now = 60.0
    bar.stage()
    bar.close()
    name = f"{small_spec().dataset} {small_spec().partition} {small_spec().method.name} seed 0"
    told = "1 of 4 rounds, 01:00 passed, accuracy 0.5000 in round 1, 1 client stages"
    assert capsys.readouterr().err == f"{name}: {told}\n"


def test_rounds_of_a_checkpoint_do_not_shorten_the_time_left(capsys, clock):
    bar = RoundProgress(small_spec(rounds=4), show=True)
    bar.rounds([{"round": 1}, {"round": 2}])
    clock.now = 60.0
    bar.rounds([{"round": 1}, {"round": 2}, {"round": 3}])
    assert "3 of 4 rounds, 01:00 passed, about 01:00 left" in capsys.readouterr().err


def test_who_wants_no_progress_gets_no_line(capsys, clock):
    bar = counter(1, "run", show=False)
    bar.update()
    bar.close()
    assert capsys.readouterr().err == ""
