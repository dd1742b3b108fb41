"""FedOL and its peers on a federation: what the server learns, what is sent, what is refused."""

import pytest
import torch
from support.logits import logs
from support.outcomes import rows
from support.refusals import refused
from support.rounds import play
from support.small import small_spec

from fedlogit.component import ComponentRef
from fedlogit.errors import FedlogitError
from fedlogit.federation import Federation
from fedlogit.files import load_npz, read_json
from fedlogit.methods import resolve
from fedlogit.methods.fedol import FedOL
from fedlogit.methods.one_shot import _agreement

ONCE = {"rounds": 1, "partition": "pathological(3)", "local": {"epochs": 6}}


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
    last = rows(train(method="fedol(iterations=4)", **ONCE))[-1]
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
        fed.train_private(proximal_mu=mu)
        moved[mu] = float((fed.vectors() - before).norm())
    assert moved[10.0] < 0.7 * moved[0.0]


def test_fedprox_without_a_proximal_term_is_fedavg(federation):
    ends = []
    for call in ("fedprox(mu=0.0, weighting='uniform')", "fedavg"):
        fed = federation(method=call, partition="iid(90)")
        play(fed, _method(call))
        ends.append(fed.server.vector.detach())
    assert torch.equal(*ends)


def test_fedprox_weighs_models_by_samples_as_its_authors_do(federation):
    fed = federation(method="fedprox", partition="quantity(1.0)")
    sizes = [client.samples for client in fed.clients]
    assert len(set(sizes)) > 1
    shares = [size / sum(sizes) for size in sizes]
    assert _method("fedprox").contributions(fed) == pytest.approx(shares)
    assert _method("fedavg").contributions(fed) == [0.25] * 4, "as CELM has FedAvg"


def _method(call):
    from fedlogit import methods

    return methods.get(small_spec(method=call).method)


def test_agreement_of_clients():
    # Three clients; on sample 0 all agree (3 of 3 pairs), on sample 1 two do (1 of 3).
    votes = torch.tensor([[0, 1], [0, 1], [0, 2]])
    logits = torch.nn.functional.one_hot(votes, 3).float()
    assert _agreement(logits) == pytest.approx((1 + 1 / 3) / 2)
    assert _agreement(logits[:1]) == 1.0


def spoil(monkeypatch, verb, which):
    """Let a verb of a federation leave NaN in the models that `which` picks, and train nobody."""

    def spoilt(fed, *_args, **_settings):
        for model in which(fed, *_args):
            model.vector.detach().fill_(torch.nan)
        return [0.0]  # losses

    monkeypatch.setattr(Federation, verb, spoilt)


@pytest.mark.parametrize(
    ("call", "verb", "which", "who"),
    [
        ("feddf", "train_private", lambda fed: fed.clients[2:3], "client 2"),
        ("fedol", "distil_server", lambda fed, _: [fed.server], "the server"),
        ("fedkt", "train_models", lambda _, models, __: models[1:2], "client 0 as teacher/0/1"),
        (
            "fedkt(teachers=1)",
            "train_models",
            lambda _, models, __: models[:1],
            "client 0 as teacher/0/0",
        ),
    ],
)
def test_a_model_of_nan_ends_the_run_and_votes_for_nothing(
    call, verb, which, who, monkeypatch, train
):
    spoil(monkeypatch, verb, which)
    result = read_json(train(method=call, **ONCE) / "result.json")
    assert (result["status"], result["final"]) == ("diverged", {})
    assert result["message"] == f"round 1: logits of {who} are not finite"


def test_a_student_of_nan_ends_the_run(monkeypatch, train):
    spoil(
        monkeypatch,
        "train_models",
        lambda _, models, __: [m for m in models if "student/1" in m.role],
    )
    result = read_json(train(method="fedkt(teachers=2)", **ONCE) / "result.json")
    assert result["message"].startswith("round 1: logits of client 0 as student/1/0")


def test_a_server_of_nan_sends_nothing_back(monkeypatch, train):
    spoil(monkeypatch, "distil_server", lambda fed, _: [fed.server])
    result = read_json(train(method="feddf", **ONCE | {"rounds": 2}) / "result.json")
    assert result["message"] == "round 1: logits of the server are not finite"
    assert result["bytes"]["down"] == {}


def test_fedol_begins_with_targets_that_were_made_before(monkeypatch, federation):
    call = "fedol(iterations=2)"
    fed, method = federation(method=call, **ONCE), _method(call)
    taught = []
    monkeypatch.setattr(fed, "distil_server", lambda given, part: taught.append(given))
    logits = fed.logits(fed.public)
    before = method.targets(logits)
    method.exchange(fed, logits, before)
    assert taught[0] is before
    fed.start_round(1)
    method.exchange(fed, logits)
    first, second = (taught[i] for i in (2, 1))
    assert torch.equal(first.distributions, before.distributions)
    assert torch.equal(first.weights, before.weights)
    assert not torch.equal(second.distributions, before.distributions), "where the server votes"


def test_from_the_second_iteration_on_fedols_server_votes_too():
    # The client says class 0 of both samples; C² = (.6, .4). The server says 1, 0; C² = (.5, .5).
    client, server = logs([[0.6, 0.4], [0.6, 0.4]]), logs([0.1, 0.9], [0.9, 0.1])
    method = FedOL(first_ratio=1.0)
    assert method.labels(client, None, 1).tolist() == [0, 0]
    # Sample 0: G_0 = (.6 - .5) / 1.1 = .09 and G_1 = (.5 - .4) / .9 = .11.
    assert method.labels(client, server, 2).tolist() == [1, 0]


def test_fedol_teaches_once_an_iteration_and_lets_the_server_vote(monkeypatch, federation):
    fed = federation(method="fedol(iterations=3)", **ONCE)
    fed.round = 1
    asked, lessons = [], []
    labels = torch.full((60,), -1)
    labels[:30] = fed.labels(fed.public[:30])  # half of the samples have a label …
    labels[0] = (labels[0] + 1) % 10  # … of which one of thirty is wrong

    def answer(_method, _logits, server, iteration):
        asked.append((server is not None, iteration))
        return labels

    monkeypatch.setattr(FedOL, "labels", answer)
    monkeypatch.setattr(fed, "distil_server", lambda targets, part: lessons.append((part, targets)))
    _method("fedol(iterations=3)").round(fed, 1)
    assert asked == [(False, 1), (True, 2), (True, 3)]
    assert [part for part, _ in lessons] == [1, 2, 3]
    assert lessons[0][1].weights.tolist() == pytest.approx([1.2] * 30 + [1.0] * 30)
    log = fed.take_log()
    for t in (1, 2, 3):
        assert log[f"pseudo_share_{t}"] == 0.5
        assert log[f"pseudo_accuracy_{t}"] == pytest.approx(29 / 30)
        server = fed.server_logits(fed.public).argmax(1)
        right = (server == fed.labels(fed.public)).double().mean()
        assert log[f"server_public_accuracy_{t}"] == float(right)


def test_what_clients_know_is_noted(monkeypatch, federation):
    fed = federation(method="feddf", **ONCE)
    fed.round = 1
    truth = fed.labels(fed.public)
    # Three clients are right on the first 15 of 60 samples, the fourth on the first 30; else wrong.
    right = torch.tensor([15, 15, 15, 30])[:, None] > torch.arange(60)
    said = torch.where(right, truth, (truth + 1) % 10)
    monkeypatch.setattr(fed, "train_private", lambda: None)
    monkeypatch.setattr(fed, "logits", lambda _: 9 * torch.nn.functional.one_hot(said, 10).float())
    monkeypatch.setattr(fed, "distil_server", lambda targets: None)
    _method("feddf").round(fed, 1)
    log = fed.take_log()
    assert log["client_public_accuracy"] == pytest.approx((3 * 15 + 30) / (4 * 60))
    assert log["oracle_accuracy"] == 0.5
    assert log["target_accuracy"] == 0.25, "the mean follows three of four"
    # All six pairs agree on 45 samples, three of six on the 15 where the fourth stands alone.
    assert log["agreement"] == pytest.approx((45 + 15 / 2) / 60)


@pytest.fixture
def ballots(monkeypatch, federation):
    """Return a function that runs FedKT on given answers, and what it trained and taught.

    `say(model)` is the label that a model gives every public sample.
    """

    def play(call, say):
        fed = federation(method=call, **ONCE)
        fed.round = 1
        fitted, taught = [], []

        def train_models(models, labels):
            fitted.extend(zip(models, labels, strict=True))
            return [float(model.role.startswith("student")) for model in models]

        monkeypatch.setattr(fed, "train_models", train_models)

        def logits(indices, models):
            row = torch.tensor([say(model) for model in models])
            return (
                torch.nn.functional.one_hot(row, 10)[:, None].expand(-1, len(indices), -1).float()
            )

        monkeypatch.setattr(fed, "logits", logits)
        monkeypatch.setattr(fed, "distil_server", taught.append)
        _method(call).round(fed, 1)
        return fed, fitted, taught[0]

    return play


def test_fedkts_settings_are_its_authors():
    method = _method("fedkt")
    assert (method.partitions, method.teachers, method.consistent) == (2, 5, True)


def test_fedkts_teachers_share_out_a_partys_samples_and_students_learn_their_majority(ballots):
    # Teachers 0, 1, 2 of a partitioning say 3, 7, 7, so every student learns 7.
    fed, fitted, _ = ballots(
        "fedkt(teachers=3)", lambda m: (3, 7, 7)[int(m.role[-1])] if "teacher" in m.role else 7
    )
    party = [(m, given) for m, given in fitted if m.index == 0]
    assert [m.role for m, _ in party] == [
        *("teacher/0/0", "teacher/0/1", "teacher/0/2", "student/0/0"),
        *("teacher/1/0", "teacher/1/1", "teacher/1/2", "student/1/0"),
    ]
    cuts = [[set(m.private.tolist()) for m, _ in party[s : s + 3]] for s in (0, 4)]
    for parts in cuts:
        assert [len(part) for part in parts] == [92, 92, 91], "275 samples in equal parts"
        assert set().union(*parts) == set(fed.clients[0].private.tolist())
    assert cuts[0] != cuts[1], "each partitioning is another one"
    assert all(torch.equal(given, fed.labels(m.private)) for m, given in party[:3])
    log = fed.take_log()
    assert (log["loss_teachers"], log["loss_students"]) == (0.0, 1.0)
    student, lesson = party[3]
    assert torch.equal(student.private, fed.public)
    assert lesson.tolist() == [7] * 60


@pytest.mark.parametrize(
    ("call", "wanted"),
    # Students of parties 0 to 3 say (0, 0), (2, 5), (2, 6), (2, 8): party 0 alone is consistent.
    [("fedkt(teachers=1)", 0), ("fedkt(teachers=1, consistent=False)", 2)],
)
def test_fedkts_server_learns_what_consistent_parties_say(call, wanted, ballots):
    says = ((0, 0), (2, 5), (2, 6), (2, 8))
    fed, _, target = ballots(call, lambda m: says[m.index][int(m.role.split("/")[1])])
    assert target.distributions.argmax(1).tolist() == [wanted] * 60
    assert target.weights.tolist() == [1.0] * 60
    log = fed.take_log()
    assert log["target_share"] == 1.0
    right = (fed.labels(fed.public) == wanted).double().mean()
    assert log["target_accuracy"] == pytest.approx(float(right))


def test_fedkts_samples_without_a_vote_have_no_weight(ballots):
    fed, _, target = ballots("fedkt(teachers=1)", lambda model: int(model.role.split("/")[1]))
    assert target.weights.tolist() == [0.0] * 60
    assert fed.take_log()["target_share"] == 0.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"method": "fedol", "server": None}, "method fedol trains a model of the server"),
        ({"method": "fedol", "public": None}, "method fedol needs a public set"),
        ({"method": "fedol(first_ratio=0)"}, "first_ratio = 0"),
        ({"method": "fedol(votes='some')"}, "votes = 'some'"),
        ({"method": "fedprox(mu=-1)"}, "mu = -1"),
        (
            {"method": "fedprox", "models": ["mlp(hidden=[16])", "mlp(hidden=[32])"]},
            "averages models, so all clients need one architecture",
        ),
        ({"method": "aggregator('nothing')"}, "'nothing': should be 'package.module:function'"),
        ({"method": "fedprox(mu=1e400)"}, "mu = inf"),
    ],
)
def test_bad_input_is_one_clear_line(changes, said, federation):
    with refused(said):
        federation(**changes)


@pytest.mark.parametrize(
    "call",
    [
        "fedkt(partitions=1, teachers=1)",
        "fedol(iterations=1, trade_off=0.0, first_ratio=1.0, ratio_step=0.0)",
        "fedet(regularisation=0.0)",
    ],
)
def test_the_least_settings_are_taken(call):
    given = ComponentRef.model_validate(call).params
    taken = small_spec(method=call, **ONCE).method.params
    assert {key: taken[key] for key in given} == given


def test_different_clients_learn_together(train):
    two = ["mlp(hidden=[16])", "mlp(hidden=[8, 8])"]
    folder = train(method="fedol(iterations=2)", models=two, **ONCE)
    assert read_json(folder / "result.json")["status"] == "finished"


def test_the_native_engine_refuses_a_proximal_term_before_any_round(train, tmp_path):
    sgd = {"name": "sgd", "lr": 0.1}
    given = {"method": "fedprox", "partition": "iid(90)", "optimizer": sgd}
    with refused("engine = 'native' needs a method without proximal term; or use engine = 'auto'"):
        train(tmp_path / "run", engine="native", **given)
    assert not (tmp_path / "run" / "rounds.csv").exists()
    folder = train(engine="native", **given | {"method": "fedprox(mu=0.0)"})
    assert read_json(folder / "result.json")["status"] == "finished"


def test_a_server_is_completed_where_it_is_taught():
    server = {"model": "mlp([24])", "epochs": 1}
    assert small_spec(method="fedol", server=server).server.model.params == {"hidden": [24]}
    assert small_spec(method="fedavg", server=server).server is None, "FedAvg teaches no model"


def test_a_party_with_fewer_samples_than_teachers_is_named(train):
    with pytest.raises(FedlogitError, match="client 0 has 3 samples, fewer than teachers = 5"):
        train(method="fedkt", **ONCE | {"partition": "iid(3)"})


def test_fedhkts_groups_share_models_and_send_them(train):
    folder = train(method="fedhkt(groups=2)", **ONCE | {"rounds": 3})
    sent = read_json(folder / "result.json")["bytes"]
    # 4 clients: C² of 10 classes, and a model of 1,210 parameters there and back.
    assert sent["up"] == {"confidence": 3 * 160, "logits": 3 * 9600, "model": 3 * 4 * 4840}
    assert sent["down"] == {"logits": 2 * 9600, "model": 3 * 4 * 4840}
    assert {float(row["groups"]) for row in rows(folder)} == {2}


def test_fedhkts_groups_are_of_one_architecture(federation):
    """With a group for everybody, models of each architecture are their average."""
    fed = federation(
        method="fedhkt(groups=1)", models=["mlp(hidden=[12])", "mlp(hidden=[9])"], rounds=2
    )
    for client in fed.clients:
        with torch.no_grad():
            client.vector.fill_(client.index)
    fed.start_round(1)
    _method("fedhkt(groups=1)").after_training(fed)
    assert [float(client.vector[0]) for client in fed.clients] == [1, 2, 1, 2]  # of 0, 2 and 1, 3


def test_fedhkt_selects_from_the_second_round_on(train):
    first, second, _ = rows(train(method="fedhkt(selection=True)", **ONCE | {"rounds": 3}))
    assert first["selected_share"] == ""
    assert 0 < float(second["selected_share"]) < 1


def test_fedhkt_whose_server_is_always_surer_keeps_its_model(federation, monkeypatch):
    fed = federation(method="fedhkt(selection=True)", rounds=2)
    monkeypatch.setattr(fed, "server_logits", lambda points: 1e4 * torch.eye(10)[points % 10])
    fed.start_round(2)
    before = fed.server.vector.detach().clone()
    _method("fedhkt(selection=True)").distil_server(fed, torch.zeros(4, 60, 10))
    assert torch.equal(fed.server.vector.detach(), before)


@pytest.mark.parametrize("call", ["fedhkt(groups=3)", "fedhkt(selection=True)"])
def test_fedhkts_parts_need_several_rounds(call):
    with refused("is for runs of several rounds; leave it out, or give rounds = 2 or more"):
        resolve(small_spec(method=call, rounds=1))
