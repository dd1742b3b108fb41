"""FedOL and its peers on a federation: what the server learns, what is sent, what is refused."""

import csv

import pytest
import torch
from refusals import refused
from small import small_spec

from fedlogit.errors import Diverged, FedlogitError
from fedlogit.federation import Federation
from fedlogit.files import load_npz, read_json
from fedlogit.methods.one_shot import _agreement, finite

ONCE = {"rounds": 1, "partition": "pathological(3)", "local": {"epochs": 6}}


def row(folder):
    with (folder / "rounds.csv").open() as file:
        return list(csv.DictReader(file))[-1]


def test_one_round_sends_logits_up_and_nothing_back(train):
    folder = train(method="fedol(iterations=2)", **ONCE)
    result = read_json(folder / "result.json")
    # 4 clients, 60 public samples, 10 classes, 4 bytes
    assert result["bytes"] == {"up": {"logits": 4 * 60 * 10 * 4}, "down": {}}
    assert len(result["final"]["per_client"]) == 1, "the server's model is what is tested"


def test_several_rounds_send_the_servers_predictions_back(train):
    folder = train(method="feddf", **ONCE | {"rounds": 3})
    sent = read_json(folder / "result.json")["bytes"]
    assert sent["up"] == {"logits": 3 * 9600}
    assert sent["down"] == {"logits": 2 * 9600}, "after the last round nobody would use it"


def test_fedkt_sends_its_students_models(train):
    folder = train(method="fedkt(partitions=2, teachers=2)", **ONCE)
    # 64-16-10: 64 · 16 + 16 + 16 · 10 + 10 = 1,210 parameters; two students for each of 4 parties.
    assert read_json(folder / "result.json")["bytes"]["up"] == {"model": 4 * 2 * 1210 * 4}


def test_more_iterations_give_more_samples_a_label(train):
    last = row(train(method="fedol(iterations=4)", **ONCE))
    shares = [float(last[f"pseudo_share_{t}"]) for t in (1, 4)]
    assert 0 < shares[0] < shares[1] <= 1
    assert float(last["oracle_accuracy"]) >= float(last["client_public_accuracy"])


def test_the_weights_are_exported_with_true_classes(train):
    folder = train(method="fedhkt", export=["aggregation"], **ONCE)
    found = load_npz(folder / "exports" / "aggregation.npz")
    assert found["weights"].shape == (4, 60)
    assert found["owned"].shape == (4, 10)
    assert abs(found["weights"].sum(0) - 1).max() < 1e-6


def test_fedprox_stays_nearer_to_where_it_starts(federation):
    moved = {}
    for mu in (0.0, 10.0):
        fed = federation(method=f"fedprox(mu={mu})", partition="iid(90)")
        before = fed.vectors()
        fed.round = 1
        fed.train_private(pull=mu)
        moved[mu] = float((fed.vectors() - before).norm())
    assert moved[10.0] < 0.7 * moved[0.0]


def test_fedprox_without_pull_is_fedavg(federation):
    ends = []
    for call in ("fedprox(mu=0.0, weighting='uniform')", "fedavg"):
        fed = federation(method=call, partition="iid(90)")
        method = _method(call)
        method.init(fed)
        fed.round = 1
        fed.ledger.start(1)
        method.round(fed, 1)
        ends.append(fed.server.vector.detach())
    assert torch.equal(*ends)


def _method(call):
    from fedlogit import methods

    return methods.get(small_spec(method=call).method)


def test_agreement_of_clients():
    # Three clients; on sample 0 all agree (3 of 3 pairs), on sample 1 two do (1 of 3).
    votes = torch.tensor([[0, 1], [0, 1], [0, 2]])
    logits = torch.nn.functional.one_hot(votes, 3).float()
    assert _agreement(logits) == pytest.approx((1 + 1 / 3) / 2)
    assert _agreement(logits[:1]) == 1.0


def test_logits_that_are_not_finite_name_the_client():
    logits = torch.zeros(3, 2, 4)
    logits[1, 0, 2] = torch.nan
    with pytest.raises(Diverged, match="logits of b on the public set are not finite"):
        finite(logits, ["a", "b", "c"])


def spoil(monkeypatch, verb, which):
    """Let a verb of a federation leave NaN in the models that `which` picks, and train nobody."""

    def spoilt(fed, *_args, **_settings):
        for model in which(fed, *_args):
            model.vector.detach().fill_(torch.nan)

    monkeypatch.setattr(Federation, verb, spoilt)


@pytest.mark.parametrize(
    ("call", "verb", "which", "who"),
    [
        ("feddf", "train_private", lambda fed: fed.clients[2:3], "client 2"),
        ("fedol", "teach", lambda fed, _: [fed.server], "the server"),
        ("fedkt", "fit", lambda _, models, __: models[1:2], "client 0 as teacher/0/1"),
        ("fedkt(teachers=1)", "fit", lambda _, models, __: models[:1], "client 0 as teacher/0/0"),
    ],
)
def test_a_model_of_nan_ends_the_run_and_votes_for_nothing(
    call, verb, which, who, monkeypatch, train
):
    spoil(monkeypatch, verb, which)
    result = read_json(train(method=call, **ONCE) / "result.json")
    assert (result["status"], result["final"]) == ("diverged", {})
    assert result["message"] == f"round 1: logits of {who} on the public set are not finite"


def test_a_student_of_nan_ends_the_run(monkeypatch, train):
    spoil(monkeypatch, "fit", lambda _, models, __: [m for m in models if "student/1" in m.role])
    result = read_json(train(method="fedkt(teachers=2)", **ONCE) / "result.json")
    assert result["message"].startswith("round 1: logits of client 0 as student/1/0")


def test_a_server_of_nan_sends_nothing_back(monkeypatch, train):
    spoil(monkeypatch, "teach", lambda fed, _: [fed.server])
    result = read_json(train(method="feddf", **ONCE | {"rounds": 2}) / "result.json")
    assert result["message"] == "round 1: logits of the server on the public set are not finite"
    assert result["bytes"]["down"] == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"method": "fedol", "server": None}, "method fedol teaches a model of the server"),
        ({"method": "fedol", "public": None}, "method fedol needs a public set"),
        ({"method": "fedol(first_ratio=0)"}, "first_ratio = 0"),
        ({"method": "fedol(votes='some')"}, "votes = 'some'"),
        ({"method": "fedprox(mu=-1)"}, "mu = -1"),
        (
            {"method": "fedprox", "models": ["mlp(hidden=[16])", "mlp(hidden=[32])"]},
            "averages models, so all clients need one architecture",
        ),
        ({"method": "aggregator('nothing')"}, "'nothing': should be 'package.module:function'"),
    ],
)
def test_bad_input_is_one_clear_line(changes, said, federation):
    with refused(said):
        federation(**changes)


def test_different_clients_learn_together(train):
    two = ["mlp(hidden=[16])", "mlp(hidden=[8, 8])"]
    folder = train(method="fedol(iterations=2)", models=two, **ONCE)
    assert read_json(folder / "result.json")["status"] == "finished"


def test_the_native_kernel_refuses_a_proximal_term(federation):
    sgd = {"name": "sgd", "lr": 0.1}
    fed = federation(method="fedprox", partition="iid(90)", optimizer=sgd)
    fed.spec = fed.spec.model_copy(update={"kernel": "native"})
    fed.round = 1
    with pytest.raises(FedlogitError, match="'native' has no proximal term"):
        fed.train_private(pull=0.1)
