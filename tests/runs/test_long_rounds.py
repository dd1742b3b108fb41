"""A round of several long steps goes on after the last one that was done, to the same bits."""

from __future__ import annotations

import json

import pytest
import torch
from support.every_method import changes
from support.outcomes import outcome, rows, same
from support.refusals import refused
from support.resuming import steps_done, stopped_in_step

from fedlogit.files import read_json
from fedlogit.methods import Method
from fedlogit.runs.tensors import read_tensors

LONG = {
    "fedol(iterations=3)": ["clients", "iteration/1", "iteration/2", "iteration/3"],
    "fedkt(teachers=2)": [f"party/{i}" for i in range(4)],
    "feddf": ["clients"],
}
ROUNDS = {"momentum": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "reset_every": "round"}}


def plan(call: str, rounds: int) -> dict:
    return changes(call) | {"clients": 4, "rounds": rounds}


STOPS = [
    (call, rounds, step, how)
    for call, names in LONG.items()
    for rounds in (1, 2)
    for step in range(1, rounds * len(names) + 1)
    for how in ("signal", "kill")
    if how == "signal" or step < rounds * len(names)  # it is killed in the step that follows
]


@pytest.mark.parametrize(("call", "rounds", "step", "how"), STOPS)
def test_stopped_after_any_step_it_ends_with_the_same_bits(
    reference, train, monkeypatch, capfd, call, rounds, step, how
):
    given, names = plan(call, rounds), LONG[call] * rounds
    with stopped_in_step(step, monkeypatch, how):
        train(every=0 if how == "kill" else 60, **given)
    round_ = (step - 1) // len(LONG[call]) + 1
    if how == "signal":
        where = f"after {names[step - 1]} in round {round_} of {rounds}"
        assert f"stopped by signal 15 {where}; the same command goes on" in capfd.readouterr().err
    with steps_done(monkeypatch) as done:
        folder = train(**given)
    assert done == names[step:]
    assert same(outcome(folder), outcome(reference(**given)))
    one, other = (read_json(path / "result.json") for path in (reference(**given), folder))
    assert one["bytes"] == other["bytes"]


class Steps(Method):
    """Two steps that change models, memory and messages, and a sum of what they return."""

    supports_partial_participation = True

    def init(self, fed):
        fed.server_state["rounds"] = torch.zeros(1)

    def round(self, fed, r):
        first = fed.once("first", lambda: self._step(fed, "a", r))
        fed.uplink("between", torch.ones(len(fed.clients), 2))
        fed.log(between=1.5)
        second = fed.once("second", lambda: self._step(fed, "b", 10 * r))
        fed.log(total=float(first["value"] + second["value"]))

    def _step(self, fed, kind, value):
        fed.train_private(part=1 + (kind == "b"))
        fed.uplink(kind, torch.ones(len(fed.clients), value))
        fed.log(**{kind: float(value)})
        fed.server_state["rounds"] += 1
        return {"value": torch.tensor([float(value), 0.5])[0]}


@pytest.mark.parametrize("optimizer", [{"name": "adam", "lr": 0.003}, ROUNDS["momentum"]])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_messages_columns_memory_and_moments_are_those_of_one_piece(
    train, tmp_path, monkeypatch, optimizer, step
):
    given = {
        "method": f"{__name__}:Steps", "rounds": 2, "optimizer": optimizer, "export": ["weights"],
        "participation": {"number": 3},
    }  # fmt: skip
    whole, resumed = train(tmp_path / "whole", **given), tmp_path / "resumed"
    with stopped_in_step(step, monkeypatch, "signal"):
        train(resumed, **given)
    saved = read_json_header(resumed)
    assert saved["round"] == (step - 1) // 2
    train(resumed, **given)
    assert same(outcome(resumed), outcome(whole))
    last = rows(resumed)[-1]
    assert [float(last[key]) for key in ("a", "b", "between", "total")] == [2, 20, 1.5, 22]
    assert [int(last[f"bytes_up.{kind}"]) for kind in ("a", "b", "between")] == [24, 240, 24]
    seconds = float(rows(resumed)[(step - 1) // 2]["seconds"])
    assert seconds > saved["seconds"] * (step % 2) >= 0, "what was taken before counts, too"


def read_json_header(folder) -> dict:
    _, header = read_tensors(folder / "checkpoint.safetensors", "checkpoint")
    return json.loads(header["note"])


class Twice(Steps):
    """Two steps of one name."""

    def round(self, fed, r):
        for _ in range(2):
            fed.once("same", dict)


class Within(Steps):
    """A step within a step."""

    def round(self, fed, r):
        fed.once("outer", lambda: fed.once("inner", dict))


def test_steps_that_could_not_be_told_apart_are_refused(train):
    with refused("fed.once('same') twice in a round; give each step a name of its own"):
        train(method=f"{__name__}:Twice")
    with refused("fed.once('inner') within fed.once('outer'); do one after the other"):
        train(method=f"{__name__}:Within")


def test_short_steps_are_not_saved(train, monkeypatch):
    def saves(*_):
        raise AssertionError("a checkpoint")

    monkeypatch.setattr("fedlogit.runs.run.save_checkpoint", saves)
    train(**plan("fedkt(teachers=2)", 1))
