"""Stops: two rounds with a checkpoint in between, and a run that is interrupted."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fedlogit.federation import Federation, round_steps
from fedlogit.methods import Method
from fedlogit.runs import run as runs
from fedlogit.runs.checkpoint import load_checkpoint, save_checkpoint
from support.outcomes import rows
from support.rounds import go_on, play


def whole_and_resumed(build: Callable[[], Federation], folder: Path) -> tuple[Federation, ...]:
    """Return a federation that trained two rounds at once, and one resumed after the first."""
    whole, first, second = (build() for _ in range(3))
    for whole.round in (1, 2):
        whole.train_private()
    first.round = 1
    first.train_private()
    save_checkpoint(folder, first, [])
    load_checkpoint(folder, second)
    second.round = 2
    second.train_private()
    return whole, second


def played_and_resumed(
    build: Callable[[], Federation], method: Method, folder: Path
) -> tuple[Federation, Federation]:
    """Return a federation after two rounds of a method, and one resumed after the first."""
    whole, first, second = (build() for _ in range(3))
    save_checkpoint(folder, play(first, method), [])
    load_checkpoint(folder, second)
    return play(whole, method, 2), go_on(second, method)


@contextmanager
def stop_after(rounds: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interrupt the run that is trained in this context when it has done this many rounds."""
    original = runs._round

    def stops(fed, method):
        if fed.round == rounds:
            raise KeyboardInterrupt
        return original(fed, method)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "_round", stops)
        with pytest.raises(KeyboardInterrupt):
            yield


@contextmanager
def rounds_done(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Note the rounds that are done in this context, which a checkpoint may spare."""
    done: list[int] = []
    original = runs._round

    def noted(fed, method):
        row = original(fed, method)
        done.append(fed.round)
        return row

    with monkeypatch.context() as patch:
        patch.setattr(runs, "_round", noted)
        yield done


def trained_in_pieces(
    train: Callable[..., Path], folder: Path, monkeypatch: pytest.MonkeyPatch, after: int, **given
) -> Path:
    """Train a run that is interrupted after so many rounds, and resumed for the others alone."""
    with stop_after(after, monkeypatch):
        train(folder, every=0, **given)
    with rounds_done(monkeypatch) as done:
        train(folder, **given)
    assert done == list(range(after + 1, len(rows(folder)) + 1)) != []
    return folder


@contextmanager
def stopped_in_step(number: int, monkeypatch: pytest.MonkeyPatch, how: str) -> Iterator[None]:
    """Ask the run in this context to stop while it does this step, or interrupt it in the next."""
    original, begun = round_steps.RoundSteps._do, []

    def stops(steps, name, step):
        begun.append(name)
        if how == "signal" and len(begun) == number:
            signal.raise_signal(signal.SIGTERM)
        if how == "kill" and len(begun) == number + 1:
            raise KeyboardInterrupt
        return original(steps, name, step)

    with monkeypatch.context() as patch:
        patch.setattr(round_steps.RoundSteps, "_do", stops)
        with pytest.raises(SystemExit if how == "signal" else KeyboardInterrupt) as ended:
            yield
    if how == "signal":
        assert ended.value.code == 143


@contextmanager
def steps_done(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note the steps that are done in this context."""
    original, done = round_steps.RoundSteps._do, []

    def noted(steps, name, step):
        done.append(name)
        return original(steps, name, step)

    with monkeypatch.context() as patch:
        patch.setattr(round_steps.RoundSteps, "_do", noted)
        yield done


@contextmanager
def ctrl_c(monkeypatch: pytest.MonkeyPatch, round_number: int, times: int = 1) -> Iterator[None]:
    """Press Ctrl-C so many times in this round of the run that is trained in this context."""
    original = runs._round

    def pressed(fed, method):
        if fed.round == round_number - 1:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return original(fed, method)

    with monkeypatch.context() as patch, ctrl_c_heeded():
        patch.setattr(runs, "_round", pressed)
        yield


@contextmanager
def ctrl_c_heeded() -> Iterator[None]:
    """Let this process heed Ctrl-C, which it ignores in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
