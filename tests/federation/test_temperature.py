"""Soft targets at a temperature: values, losses, and whom that concerns, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from support.every_method import ON_TEXT, VARIANTS, changes
from support.refusals import refused
from support.small import small_spec
from support.tiers import first_of_each, method_of

from fedlogit import methods
from fedlogit.aggregation import Targets
from fedlogit.aggregation.targets import soften
from fedlogit.engine.task import ClientTask
from fedlogit.errors import Unsupported
from fedlogit.federation.client_tasks import distillation_tasks, server_tasks
from fedlogit.files import read_json
from fedlogit.runs.compare_runs import exported_weights, untimed_rows
from fedlogit.runs.stages import clients_spec, in_stages

TWO = {"temperature": 2.0}
# At T = 2 probabilities of 0.8 and 0.2 are as their roots, which are 2 to 1.
SHARP, SOFT = [0.8, 0.2], [2 / 3, 1 / 3]


def softened(call: str) -> bool:
    return methods.get(small_spec(**changes(call)).method).distils_soft_targets


SOFTENED = [call for call in (*VARIANTS, *ON_TEXT) if softened(call)]
OTHERS = [call for call in VARIANTS if not softened(call)]


def test_softening_is_that_of_logits():
    logits = torch.tensor([[3.0, -1.0, 0.5], [0.0, 20.0, -40.0]])
    for temperature in (0.5, 2.0, 7.0):
        wanted = (logits / temperature).softmax(-1)
        found = soften(logits.softmax(-1), temperature)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=0)


def test_softening_by_hand():
    assert soften(torch.tensor([SHARP]), 2.0)[0].tolist() == pytest.approx(SOFT)
    assert soften(torch.tensor([SOFT]), 0.5)[0].tolist() == pytest.approx(SHARP)


def test_a_row_keeps_its_weight_and_a_hard_label_stays_hard():
    rows = torch.tensor([[0.4, 0.1], [0.0, 0.7], [0.0, 0.0]])
    assert soften(rows, 2.0).tolist() == [
        pytest.approx(r) for r in ([1 / 3, 1 / 6], [0, 0.7], [0, 0])
    ]


def test_temperature_1_changes_nothing():
    rows = torch.rand(3, 4)
    assert soften(rows, 1.0) is rows


def test_the_loss_by_hand(federation):
    client = federation().clients[0]
    logits = torch.tensor([[2 * math.log(3), 0.0]])  # 9 to 1, and 3 to 1 at T = 2
    targets = {"labels": torch.tensor([0]), "soft": torch.tensor([[0.5, 0.5]])}
    task = ClientTask(client, client.private, [], label_weight=0.3, temperature=2.0)
    soft = -4 * (math.log(3 / 4) + math.log(1 / 4)) / 2
    assert float(task.loss(logits, targets)) == pytest.approx(-0.3 * math.log(0.9) + soft)


def test_clients_and_the_server_learn_softened_targets(federation):
    fed = federation(method="feddf", partition="iid(90)", **TWO)
    fed.start_round(1)
    points = len(fed.public)
    rows, wanted = (torch.tensor(two + [0.0] * 8).repeat(points, 1) for two in (SHARP, SOFT))
    weights = torch.linspace(0.5, 1, points)
    own = torch.stack([rows] * len(fed.clients))
    clients = (fed.context, fed.clients, fed.public)
    shared, each, server = (
        distillation_tasks(*clients, rows, 0.0, False),
        distillation_tasks(*clients, own, 0.0, False),
        server_tasks(fed.context, fed.server, fed.public, Targets(rows, weights), 1),
    )
    for task in (*shared, *each):
        torch.testing.assert_close(task.soft, wanted)
    torch.testing.assert_close(server[0].soft, weights[:, None] * wanted)
    assert {task.temperature for task in (*shared, *each, *server)} == {2.0}


@pytest.mark.parametrize("call", first_of_each(SOFTENED, method_of))
def test_every_method_with_soft_targets_learns_otherwise_and_sends_the_same(train, call):
    given = changes(call) | {"rounds": 2}
    plain, soft = (train(**given | how) for how in ({}, TWO))
    one, other = (read_json(folder / "result.json") for folder in (plain, soft))
    assert other["status"] == "finished"
    assert one["bytes"] == other["bytes"]
    weights, softened = exported_weights(plain), exported_weights(soft)
    assert any(not torch.equal(weights[name], softened[name]) for name in weights)
    private = [untimed_rows(folder)[0]["loss_private"] for folder in (plain, soft)]
    assert private[0] == private[1], "labels of private samples have no temperature"


@pytest.mark.parametrize("call", OTHERS)
def test_other_methods_have_nothing_to_soften(call):
    with pytest.raises(Unsupported, match=r"temperature = 2: .* distils no soft targets, or mixes"):
        small_spec(**changes(call), **TWO)


def test_a_run_at_temperature_1_keeps_its_hash():
    assert "temperature" not in small_spec().canonical()
    assert small_spec(temperature=1).digest() == small_spec().digest()


def test_one_shot_runs_of_all_temperatures_share_their_clients():
    plain, soft = (small_spec(method="feddf", rounds=1, **how) for how in ({}, TWO))
    assert in_stages(soft)
    assert clients_spec(soft) == clients_spec(plain)


@pytest.mark.parametrize("value", [0, 1e-5, -1, 2000, "hot", None])
def test_bad_input_is_one_clear_line(value):
    with refused(f"temperature = {value!r}"):
        small_spec(temperature=value)
