"""`check_method` finds the mistakes that people make, and none in what is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.calls import script

from fedlogit.engine.stacked import StackedEngine
from fedlogit.errors import DataError, Diverged
from fedlogit.runs.conformance import SMALL_SPEC

RIGHT = '''
from __future__ import annotations

import threading

import torch

from fedlogit.federation import Federation
from fedlogit.methods import LogitFederation


class Median(LogitFederation):
    """The element-wise median of the clients' logits."""

    def aggregate(self, fed, logits):
        return logits.median(0).values.softmax(1)
'''
AGGREGATE = "        return logits.median(0).values.softmax(1)\n"
MISTAKES = {
    "a run finishes with finite numbers": (
        "        next(fed.clients[0].model.parameters()).data.fill_(torch.nan)\n" + AGGREGATE
    ),
    "a second run has the same bits": (
        "        weights = torch.rand(len(logits), 1, 1)\n"
        "        return (weights * logits).sum(0).softmax(1)\n"
    ),
    "a run that is stopped and resumed": (
        "        before = getattr(fed, 'before', logits)\n"
        "        fed.before = logits\n"
        "        return (logits + before).mean(0).softmax(1)\n"
    ),
    "three threads give the same bits": (
        "        main = threading.main_thread()\n"
        "        here = fed.for_each(fed.clients, lambda _: threading.current_thread() is main)\n"
        "        return (logits / (1 + sum(here))).mean(0).softmax(1)\n"
    ),
    "no model learns from the test split: with other test samples, the final weights client0/": (
        "        return (logits * fed.test_logits().mean()).median(0).values.softmax(1)\n"
    ),
    "no model learns from labels of public samples: with other labels of public samples, the": (
        "        return torch.nn.functional.one_hot(fed.labels(fed.public), 10).float()\n"
    ),
}


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Return a function that writes a module and checks a method of it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def check(code: str, module: str, *options: str):
        Path(f"{module}.py").write_text(code)
        return script("check_method", f"{module}:Median", *options)

    return check


def test_a_method_that_is_right_passes_every_check(outside):
    done = outside(RIGHT, "right")
    assert done.returncode == 0, done.stdout
    said = done.stdout.splitlines()
    assert said[-1] == "right:Median on digits: no checks failed"
    assert [line.split()[0] for line in said[:-1]] == ["ok"] * 3 + ["skipped"] + ["ok"] * 10
    assert said[3].endswith("has the same bits: the method has none (fed.once)")
    assert "(stacked)" in said[5]
    assert not list(Path().glob("results*"))


@pytest.mark.parametrize("check", MISTAKES)
def test_each_mistake_is_found_first_by_its_check(outside, check):
    code = RIGHT.replace(AGGREGATE, MISTAKES[check])
    done = outside(code, f"wrong_{list(MISTAKES).index(check)}")
    line, *_ = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert done.returncode == 1
    assert line.removeprefix("FAILED   ").startswith(check), done.stdout


STEPS = """
    def round(self, fed, r):
        fed.once("private", lambda: self._train(fed))
        logits = fed.uplink("logits", fed.logits(fed.public))
        self._count(fed, r)
        fed.once("public", lambda: self._learn(fed, self.aggregate(fed, logits)))

    def _train(self, fed):
        fed.train_private()
        return {}

    def _learn(self, fed, targets):
        weight = 1 + fed.server_state.get("count", torch.zeros(1))
        fed.distil(fed.public, fed.downlink("probabilities", targets) ** weight)
        return {}

    def _count(self, fed, r):
        fed.server_state["count"] = COUNT
"""


@pytest.mark.parametrize(
    ("count", "said"),
    [
        ("torch.tensor([float(r)])", "ok"),
        ("fed.server_state.get('count', torch.zeros(1)) + 1", "FAILED"),
    ],
)
def test_what_is_changed_between_steps_and_not_within_is_found(outside, count, said):
    done = outside(RIGHT + STEPS.replace("COUNT", count), f"steps_{said}")
    check = "a run that is stopped within a round, after a long step, has the same bits"
    (line,) = (line for line in done.stdout.splitlines() if check in line)
    assert line.split()[0] == said, done.stdout
    if said == "FAILED":
        assert "stopped after step 2: " in line
        assert line.endswith("within steps, or after the last one")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DataError("a batch is damaged"), "stacked: a batch is damaged"),
        (Diverged("a loss of nan"), "stacked: diverged: round 1: a loss of nan"),
    ],
)
def test_an_engine_that_fails_is_not_one_that_cannot_run_the_spec(monkeypatch, error, said):
    def fail(*_args):
        raise error

    monkeypatch.setattr(StackedEngine, "train", fail)
    done = script("check_method", "average")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("FAILED"))
    assert line == f"FAILED   other engines agree with the loop (stacked): {said}"


def test_what_is_sent_past_the_ledger_is_found(outside):
    code = RIGHT + (
        "\n    def round(self, fed, r):\n"
        "        fed.train_private()\n"
        "        points = fed.public\n"
        "        fed.distil(points, fed.logits(points).mean(0).softmax(1))\n"
    )
    done = outside(code, "silent")
    assert "FAILED   clients send something: no bytes are counted; " in done.stdout


def test_a_method_that_need_not_send_anything_but_does_is_told_that_it_sends():
    said = script("check_method", "fedavg").stdout
    assert "ok       clients send something\n" in said


def test_what_a_method_keeps_on_itself_is_refused_with_where_it_belongs(outside):
    kept = "        self.before = logits\n"
    done = outside(RIGHT.replace(AGGREGATE, kept + AGGREGATE), "forgetful")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "error: method median: self.before cannot be set, as a checkpoint would lack it; keep what"
        " is needed in a later round in fed.server_state['before'], a tensor"
    )
    assert "Traceback" not in done.stderr


def test_what_a_method_packs_itself_is_found_where_it_should_be_rounded(outside):
    code = RIGHT + (
        "\n    def round(self, fed, r):\n"
        "        fed.train_private()\n"
        "        logits = fed.uplink('logits', fed.logits(fed.public), bits=32)\n"
        "        fed.distil(fed.public, logits.mean(0).softmax(1))\n"
    )
    (line,) = (x for x in outside(code, "packed").stdout.splitlines() if x.startswith("FAILED"))
    assert line.startswith("FAILED   predictions can be sent in fewer bits (quantization): ")
    assert "rounded no message of round 1" in line


def test_a_method_that_goes_on_with_what_it_has_sent_is_found(outside):
    """No adversary and no rounding would have an effect on it."""
    code = RIGHT + (
        "\n    def round(self, fed, r):\n"
        "        fed.train_private()\n"
        "        logits = fed.logits(fed.public)\n"
        "        fed.uplink('logits', logits)\n"
        "        fed.distil(fed.public, logits.mean(0).softmax(1))\n"
    )
    done = outside(code, "unread")
    found = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert [line.split(": ")[0] for line in found] == [
        "FAILED   predictions of adversaries are falsified",
        "FAILED   predictions can be sent in fewer bits (quantization)",
    ]
    said = ": the models are the same; go on with what fed.uplink returns"
    assert all(line.endswith(said) for line in found)


def test_a_method_that_learns_no_soft_targets_is_found_where_it_says_so(outside):
    code = RIGHT + (
        "\n    def round(self, fed, r):\n"
        "        fed.train_private()\n"
        "        fed.uplink('logits', fed.logits(fed.public))\n"
    )
    Path("hot.json").write_text(json.dumps(SMALL_SPEC | {"rounds": 1, "temperature": 500.0}))
    *_, line = (
        x
        for x in outside(code, "unsoftened", "--spec", "hot.json").stdout.splitlines()
        if x.startswith("FAILED")
    )
    assert line.startswith("FAILED   soft targets can be softened (temperature): the models are")
    assert "the same at temperature 1; distil by fed.distil" in line


def test_an_error_in_a_check_is_what_it_found_and_the_others_follow(outside):
    """A contribution of each client is given, though some are absent."""
    given = "        fed.contribute(torch.ones(len(fed.all_clients)))\n"
    done = outside(RIGHT.replace(AGGREGATE, given + AGGREGATE), "of_all")
    assert done.returncode == 1, done.stderr
    said = done.stdout.splitlines()
    (line,) = (line for line in said if line.startswith("FAILED"))
    assert line.startswith("FAILED   clients may be absent in a round: ")
    assert "needs a number for each of the 3 clients that are present" in line
    assert said[-2] == "ok       soft targets can be softened (temperature)"
    assert said[-1].endswith(": 1 checks failed")


def test_of_bytes_that_depend_on_values_only_the_columns_that_differ_are_named(outside):
    longer = "        fed.downlink('extra', logits[logits > 0])\n"
    done = outside(RIGHT.replace(AGGREGATE, longer + AGGREGATE), "longer")
    lines = [line for line in done.stdout.splitlines() if "counts the same" in line]
    assert lines[0].startswith("FAILED")
    assert "bytes_down.extra" in lines[0]
    assert "bytes_up" not in lines[0]
    assert "bytes_down.logits" not in lines[0]


def test_a_spec_that_suits_the_method_can_be_given(outside):
    spec = {"dataset": "digits", "partition": "iid(60)", "clients": 2, "public": {"size": 20}}
    spec |= {"models": ["mlp(hidden=[4])"], "rounds": 1, "optimizer": {"name": "sgd", "lr": 0.1}}
    Path("spec.json").write_text(json.dumps(spec | {"local": {"epochs": 1}, "seed": 0}))
    done = outside(RIGHT, "given", "--spec", "spec.json")
    assert (
        "skipped  a run that is stopped and resumed has the same bits: the spec has" in done.stdout
    )
    assert done.returncode == 0, done.stdout
    alone = spec | {"clients": 1, "local": {"epochs": 1}, "seed": 0}
    Path("spec.json").write_text(json.dumps(alone))
    done = outside(RIGHT, "given", "--spec", "spec.json")
    assert "skipped  predictions of adversaries are falsified: the spec has one" in done.stdout
    assert done.returncode == 0, done.stdout
    Path("spec.json").write_text(json.dumps(spec | {"public": None}))
    done = outside(RIGHT, "given", "--spec", "spec.json")
    assert done.returncode == 2
    assert "error: " in done.stderr


def test_a_method_that_lacks_what_its_base_class_needs_is_one_line(outside):
    done = outside(RIGHT.replace("aggregate", "agregate"), "misspelt")
    assert done.returncode == 2
    assert done.stderr == (
        "error: method misspelt:Median: class Median does not define aggregate\n"
    )


def test_a_file_in_place_of_a_module_is_one_line():
    done = script("check_method", "my_module.py:Median")
    assert done.returncode == 2
    assert "method = 'my_module.py:Median': should be 'my_module:Median'" in done.stderr


def test_a_method_that_there_is_not_is_one_line():
    done = script("check_method", "avarage")
    assert done.returncode == 2
    assert "did you mean 'average'?" in done.stderr
