"""What every method keeps where clients are absent; a new file in `fedlogit.methods` is tested.

Three of four clients are there in each round, or two where more is to be seen.
"""

from __future__ import annotations

import copy
from unittest import mock

import pytest
import torch
from support.every_method import METHODS, ON_TEXT, VARIANTS, changes, with_absences
from support.outcomes import exported_weights, outcome, same, untimed_rows
from support.resuming import rounds_done, stop_after
from support.rounds import go_on, play
from support.small import small_spec
from support.tiers import first_of_each, method_of

from fedlogit import methods
from fedlogit.component import catalogue
from fedlogit.federation import Client, Federation
from fedlogit.files import load_npz, read_json
from fedlogit.methods import Method
from fedlogit.participation import Participation
from fedlogit.runs.checkpoint import load_checkpoint, save_checkpoint

EVERY = first_of_each([*VARIANTS, ON_TEXT[-1]], method_of)
# What these send depends on what clients have learnt, or on who has labelled what before.
OF_OTHER_SIZES = ("cgsv", "cffl(sparse=True)", "meta_model")
ALWAYS = Participation(share=1.0)
WAYS = ("up", "down", "exchange")


def begun(federation, call: str, **given: object) -> tuple[Federation, Method]:
    fed = federation(**with_absences(call, 0.5) | given)
    return fed, methods.get(fed.spec.method)


def kept(client: Client) -> dict:
    """Return all that a client is: its model and its optimizer."""
    return copy.deepcopy(
        {"model": client.model.state_dict(), "optimizer": client.optimizer.state_dict()["state"]}
    )


def equal(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(value, b[key]) for key, value in a.items())
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def noted(fed: Federation, monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """Return a list that gets each model that an engine trains or asks, every time it does."""
    models: list[Client] = []

    def notes(engine, name, of):
        original = getattr(engine, name)

        def call(*args):
            models.extend(of(args))
            return original(*args)

        monkeypatch.setattr(engine, name, call)

    for engine in {fed.engine, fed.server_engine}:
        notes(engine, "train", lambda args: [task.client for task in args[0]])
        notes(engine, "predict", lambda args: args[0])
        notes(engine, "predict_one", lambda args: [args[0]])
        notes(engine, "map", lambda args: args[1])
    return models


def booked(fed: Federation, monkeypatch: pytest.MonkeyPatch) -> dict[str, mock.Mock]:
    """Return what gets each message that the ledger is told of, by its direction."""
    ways = {name: mock.Mock(wraps=getattr(fed.ledger, name)) for name in WAYS}
    for name, way in ways.items():
        monkeypatch.setattr(fed.ledger, name, way)
    return ways


@pytest.mark.parametrize("call", EVERY)
def test_nobody_absent_changes_is_asked_sends_or_receives(federation, monkeypatch, call):
    """Messages have a row for each who is there (FedKT's students are sent by a party each)."""
    fed, method = begun(federation, call)
    models, ways = noted(fed, monkeypatch), booked(fed, monkeypatch)
    method.init(fed)
    for _ in range(3):
        models.clear()
        before = {client.index: kept(client) for client in fed.all_clients}
        go_on(fed, method)
        there = {client.index for client in fed.clients}
        assert {model.index for model in models} - {-1} == there, "all of them, and no other"
        absent = [client for client in fed.all_clients if client.index not in there]
        assert len(absent) == 2
        assert all(equal(kept(client), before[client.index]) for client in absent)
    up, down, exchange = (ways[name].call_args_list for name in WAYS)
    senders = [len(found.args[1]) for found in up + exchange]
    receivers = [found.kwargs["clients"] for found in down]
    assert max([0, *senders, *receivers]) <= 2


@pytest.mark.parametrize("call", EVERY)
def test_a_round_costs_as_much_as_who_is_there(federation, monkeypatch, call):
    """Two of two clients, and of eight: the same tasks, forward passes and bytes."""
    found = []
    for exist in (2, 8):
        fed, method = begun(federation, call, clients=exist, participation={"number": 2})
        models = noted(fed, monkeypatch)
        play(fed, method, 3)
        costs = fed.ledger.totals() if not call.startswith(OF_OTHER_SIZES) else {}
        found.append((len(models), costs))
    assert found[0] == found[1]


@pytest.mark.parametrize("call", EVERY)
def test_resumed_with_absences_is_uninterrupted_whatever_the_workers(
    reference, train, monkeypatch, call
):
    with stop_after(1, monkeypatch):
        train(workers=3, every=0, **with_absences(call))
    whole = reference(**with_absences(call))
    with rounds_done(monkeypatch) as done:
        resumed = train(workers=2, **with_absences(call))
    assert done == [2, 3]
    assert same(outcome(resumed), outcome(whole))
    assert [row["present"] for row in untimed_rows(whole)] == ["3"] * 3


@pytest.mark.parametrize("call", EVERY)
def test_if_everybody_is_there_it_is_the_run_without(reference, train, monkeypatch, call):
    """A spec that says so is completed to the one without, so here it is given to the run."""
    wanted, models = outcome(reference(**changes(call)))
    monkeypatch.setattr("fedlogit.methods.resolution._participation", lambda spec, method: ALWAYS)
    rows, found = outcome(train(**changes(call)))
    for row in rows:
        assert row.pop("present") == str(small_spec(**changes(call)).clients)
        if (own := row.pop("accuracy_present", None)) is not None:
            assert float(own) == pytest.approx(float(row["accuracy"]))
    assert same((rows, found), (wanted, models))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_does_without_a_client(name):
    cls = catalogue("fedlogit.methods", Method)[name]
    assert cls.supports_partial_participation
    assert any("Absent clients:" in (base.__doc__ or "") for base in cls.__mro__)


def test_clients_that_wait_are_not_tested_again(federation, monkeypatch):
    fed, method = begun(federation, "average")
    play(fed, method)
    first = fed.evaluate()
    go_on(fed, method)
    models = noted(fed, monkeypatch)
    second = fed.evaluate()
    there = {client.index for client in fed.clients}
    assert {model.index for model in models} == there
    for i in set(range(4)) - there:
        assert second.per_client[i] == first.per_client[i]
    again = fed.test_counts(fed.all_clients)
    assert [int(m.hits.sum()) for m in again] == pytest.approx(
        [accuracy * len(fed.data.test_labels) for accuracy in second.per_client]
    )


def test_accuracy_is_of_all_models_and_that_of_those_present_beside_it(reference):
    folder = reference(**with_absences("average"))
    final = read_json(folder / "result.json")["final"]
    last = untimed_rows(folder)[-1]
    spec = small_spec(**with_absences("average"))
    there = spec.participation.present(3, 4, spec.seed)
    assert float(last["accuracy"]) == pytest.approx(sum(final["per_client"]) / 4)
    own = [final["per_client"][i] for i in there]
    assert float(last["accuracy_present"]) == pytest.approx(sum(own) / 3)


def test_a_checkpoint_keeps_the_scores_of_who_waits(federation, tmp_path):
    """Where models are asked together, how many they are may turn the last bit of a score."""
    fed, method = begun(federation, "average")
    play(fed, method)
    fed.evaluate()
    go_on(fed, method)
    waiting = {client.index for client in fed.all_clients} - {c.index for c in fed.clients}
    assert fed.tested.keys() == waiting
    save_checkpoint(tmp_path, fed, [])
    other, _ = begun(federation, "average")
    load_checkpoint(tmp_path, other)
    assert other.tested.keys() == waiting
    for i in waiting:
        assert torch.equal(other.tested[i].hits, fed.tested[i].hits)
        assert torch.equal(other.tested[i].loss, fed.tested[i].loss)


def test_all_models_are_exported_that_of_the_absent_too(train):
    """As a run leaves them: its last round has three of four."""
    folder = train(**with_absences("average") | {"export": ["weights", "logits", "test_logits"]})
    for name in ("logits", "test_logits"):
        assert len(load_npz(folder / "exports" / f"{name}.npz")["logits"]) == 4
    found = {name.partition("/")[0] for name in exported_weights(folder)}
    assert found == {f"client{i}" for i in range(4)}
