"""Runs that only count: the ledger of a training run, and nothing else."""

import math

import pytest
import torch
from support.every_method import VARIANTS, changes
from support.outcomes import rows
from support.refusals import refused
from support.small import small_spec

from fedlogit import methods
from fedlogit.files import read_json
from fedlogit.results.metrics import value
from fedlogit.results.runs.run import read_run
from fedlogit.runs.stages import in_stages

COUNTED = [v for v in VARIANTS if methods.get(small_spec(**changes(v)).method).fixed_messages]


def sent(folder) -> dict:
    return read_json(folder / "result.json")["bytes"]


@pytest.mark.parametrize("call", COUNTED)
def test_the_ledger_is_that_of_the_run_that_trains(call, reference, train):
    trained, counted = reference(**changes(call)), train(**changes(call), ledger_only=True)
    assert sent(counted) == sent(trained)
    assert bool(sent(counted)["up"]) is (call != "local"), "but for one method something is sent"


def test_every_method_of_the_papers_tables_of_bytes_can_be_counted():
    fedol = {"fedol", "fedavg", "feddf", "fedet", "fedkt"}
    tally_train = {"tally_train", "feddf_fusion", "local"}
    who_to_trust = {"average", "uwa", "meta_model", "fedavg"}
    assert {c.partition("(")[0] for c in COUNTED} >= fedol | tally_train | who_to_trust


def test_the_papers_resnet20_as_a_message(train):
    """FedOL's 65.14 MiB: 17,075,274 parameters for three channels; digits have one."""
    heavy = {"models": ["resnet20_heavy"], "clients": 1, "partition": "iid(90)", "rounds": 1}
    folder = train(method="fedavg", ledger_only=True, **heavy)
    parameters = 17_075_274 - 2 * 64 * 3 * 3
    # Mean and variance of: the stem, 2 blocks of 64, then 2, 3, 3 of 128, 256, 512 with a shortcut.
    channels = 64 + 4 * 64 + 5 * 128 + 7 * 256 + 7 * 512
    assert sent(folder)["up"] == {"model": 4 * (parameters + 2 * channels)}


def test_logits_of_table_2_by_hand(train):
    # 4 clients, 60 public samples, 10 classes, 4 bytes; two students of 1,210 numbers each.
    assert sent(train(method="fedol", rounds=1, ledger_only=True))["up"] == {"logits": 9600}
    assert sent(train(method="fedkt", rounds=1, ledger_only=True))["up"] == {
        "model": 4 * 2 * 1210 * 4
    }


def test_nothing_but_bytes_is_noted(train):
    folder = train(method="fedhkt", export=["aggregation"], rounds=1, ledger_only=True)
    (row,) = rows(folder)
    assert set(row) == {"round", "bytes_up", "bytes_down", "bytes_up.logits", "seconds"}
    assert read_json(folder / "result.json")["final"] == {}
    assert not (folder / "exports").exists()


def test_a_counted_run_is_whole_and_has_no_accuracy(train):
    spec = small_spec(method="feddf", rounds=1, ledger_only=True)
    run = read_run(train(method="feddf", rounds=1, ledger_only=True), spec.digest())
    assert math.isnan(value(run, "accuracy"))
    assert value(run, "mebibytes_up") == 60 * 10 * 4 / 2**20
    assert value(run, "mebibytes_up_f64") == 60 * 10 * 8 / 2**20


def test_a_soft_label_of_a_counted_run_is_forty_times_a_vote(train):
    changes = {"method": "tally_train(warm_up=1)", "ledger_only": True}
    run = read_run(train(**changes), small_spec(**changes).digest())
    assert value(run, "bytes_per_probe") == 1
    assert value(run, "reduction") == 4 * 10


def test_nobody_learns(federation):
    fed = federation(method="feddf", rounds=1, ledger_only=True)
    first = [model.vector.clone() for model in fed.models]
    fed.round = 1
    fed.ledger.start(1)
    methods.get(fed.spec.method).round(fed, 1)
    assert all(map(torch.equal, first, [model.vector for model in fed.models]))
    assert fed.logits(fed.public).shape == (4, 60, 10)
    assert not fed.logits(fed.public).any()


@pytest.mark.parametrize(("ledger_only", "steps"), [(True, [1]), (False, [1, 2, 3])])
def test_messages_that_are_alike_are_made_once_and_booked_each_round(
    federation, ledger_only, steps
):
    fed, made = federation(method="uwa", ledger_only=ledger_only), []

    def step():
        made.append(fed.round)
        fed.uplink("logits", torch.zeros(4, 5))

    for fed.round in (1, 2, 3):
        fed.ledger.start(fed.round)
        fed.send_alike("probes", step)
    assert made == steps
    assert [fed.ledger.of_round(r)["bytes_up"] for r in (1, 2, 3)] == [4 * 5 * 4] * 3


def test_a_counted_run_shares_no_stages():
    for counted in (False, True):
        spec = small_spec(method="feddf", rounds=1, ledger_only=counted)
        assert in_stages(spec) is not counted


def test_messages_that_depend_on_values_cannot_be_counted(federation):
    with refused("ledger_only = true: what method cgsv sends may depend on what its models learn"):
        federation(method="cgsv", ledger_only=True)


def test_a_training_run_keeps_its_hash():
    assert "ledger_only" not in small_spec().canonical()
