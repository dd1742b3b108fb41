"""Numbers by hand where a client is absent: weights, reputations, mixtures, votes, and who waits.

Of three clients number 1 is absent in round 2, unless a test says otherwise.
"""

from __future__ import annotations

import math

import pytest
import torch
from support.celm_family import family, vectors_after
from support.consensus import consensus_of
from support.logits import logs
from support.rounds import go_on, peers_after, play

from fedlogit import methods
from fedlogit.federation import Federation
from fedlogit.methods import Method

WITHOUT_1 = {"schedule": [{"clients": [1], "until": 1}, {"clients": [1], "since": 3}]}
LATE_1 = {"schedule": [{"clients": [1], "since": 2}]}


def three(federation, call: str, participation: dict = WITHOUT_1, **changes):
    """Return three clients of the CELM family that have not begun, and their method."""
    given = {"clients": 3, "partition": "iid", "participation": participation} | changes
    fed, method = family(federation, call, **given)
    method.init(fed)
    return fed, method


def shares(fed: Federation, method: Method) -> list[float]:
    """Do the next round; return what each of three clients contributed."""
    go_on(fed, method)
    log = fed.take_log()
    return [log[f"contribution_{i}"] for i in range(3)]


def test_fedavg_weighs_those_present_by_their_samples(federation):
    late = {"schedule": [{"clients": [0, 1], "since": 2}]}
    call = "fedavg(weighting='samples')"
    fed, method = family(federation, call, partition="sls(2)", participation=late)
    play(fed, method)
    sizes = torch.tensor([c.samples for c in fed.all_clients[2:]]).double()
    expected = (sizes / sizes.sum()).float() @ torch.stack([c.vector for c in fed.all_clients[2:]])
    assert torch.allclose(fed.server.vector, expected, atol=1e-6)
    log = fed.take_log()
    assert [log["contribution_0"], log["contribution_1"]] == [0, 0]
    # 1,210 parameters of 4 bytes, three times each way.
    assert fed.ledger.totals() == {way: {"model": 3 * 4 * 1210} for way in ("up", "down")}


def test_who_comes_late_starts_from_the_global_model(federation):
    fed, method = three(federation, "fedavg", LATE_1)
    first = fed.server.vector.detach().clone()
    vectors_after(fed, torch.ones(1, 1))  # each local stage adds 1 to every parameter
    go_on(fed, method)
    assert torch.equal(fed.all_clients[1].vector, first), "it waits with w_g^(0)"
    go_on(fed, method)
    assert torch.allclose(fed.all_clients[1].vector, first + 2)


def test_who_comes_late_among_peers_starts_from_its_own_weights(federation):
    fed, method = three(federation, "average", LATE_1, public={"size": 60}, same_init=False)
    first = fed.all_clients[1].vector.detach().clone()
    begun = []
    go_on(fed, method)
    train = fed.train_private
    fed.train_private = lambda: (begun.append(fed.all_clients[1].vector.detach().clone()), train())
    go_on(fed, method)
    assert torch.equal(begun[0], first)


def test_the_first_epochs_are_those_of_a_clients_first_round(federation, monkeypatch):
    local = {"epochs": 1, "first_epochs": 3}
    fed, method = three(federation, "local", LATE_1, local=local, batch=10_000)
    steps = {}
    train = fed.engine.train

    def noted(tasks):
        steps[fed.round] = {task.client.index: len(task.batches) for task in tasks}
        return train(tasks)

    monkeypatch.setattr(fed.engine, "train", noted)
    go_on(fed, method, 3)
    assert steps == {1: {0: 3, 2: 3}, 2: {0: 1, 1: 3, 2: 1}, 3: {0: 1, 1: 1, 2: 1}}


def test_models_that_are_new_in_each_round_have_the_first_epochs_in_each(federation, monkeypatch):
    """FedKT's teachers and students start anew; the clients, which it trains not, do not count."""
    local = {"epochs": 1, "first_epochs": 3}
    fed, method = three(federation, "fedkt(1, 2)", local=local, batch=10_000, public={"size": 60})
    steps = {1: set(), 2: set()}
    train = fed.engine.train

    def noted(tasks):
        steps[fed.round] |= {(task.client.role, len(task.batches)) for task in tasks}
        return train(tasks)

    monkeypatch.setattr(fed.engine, "train", noted)
    go_on(fed, method, 2)
    assert steps[1] == steps[2]
    assert steps[2] == {("teacher/0/0", 3), ("teacher/0/1", 3), ("student/0/0", 3)}


def test_celms_contributions_and_images_of_the_absent_wait(federation, monkeypatch):
    fed, method = three(federation, "celm(steps=2, warm_up=1.0)")

    def has(*q: float) -> None:  # evidence of one class of ten
        rows = torch.zeros(len(q), 10, dtype=torch.float64)
        rows[:, 0] = torch.tensor(q)
        monkeypatch.setattr("fedlogit.methods.celm.evidence", lambda client, reference: rows)

    has(2, 1, 1)  # scores 1/2, 1/4, 1/4: half way from 1/3
    assert shares(fed, method) == pytest.approx([5 / 12, 7 / 24, 7 / 24], abs=1e-9)
    images = fed.server_state["celm/images"].clone()
    has(1, 0)
    # Of their 17/24 the two have 10/17 and 7/17; half way to 1 and 0 that is 27/34 and 7/34.
    assert shares(fed, method) == pytest.approx([27 / 34, 0, 7 / 34], abs=1e-9)
    kept = fed.server_state["celm/contributions"].tolist()
    assert kept == pytest.approx([27 / 48, 14 / 48, 7 / 48], abs=1e-9)
    assert torch.equal(fed.server_state["celm/images"][2], images[2])
    assert not torch.equal(fed.server_state["celm/images"][3], images[3])
    assert fed.server_state["celm/evidence"].isnan().any(2).tolist()[1] == [False, True, False]
    has(0, 0, 0)  # no evidence: c stays
    assert shares(fed, method) == pytest.approx([27 / 48, 14 / 48, 7 / 48], abs=1e-9)


def test_celms_frozen_contributions_are_scaled_to_those_present(federation):
    fed, method = three(federation, "celm(steps=1, warm_up=0.25)")
    go_on(fed, method)
    fed.server_state["celm/contributions"] = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    assert shares(fed, method) == pytest.approx([0.625, 0, 0.375])
    assert shares(fed, method) == pytest.approx([0.5, 0.2, 0.3])


def cosines(monkeypatch, *rounds: list[float]) -> list[list[float]]:
    """Let clients have these cosines in all classes, round by round; return the weights in use."""
    used, found = [], iter(rounds)

    def class_similarity(heads, weights):
        used.append(weights.tolist())
        return torch.tensor(next(found), dtype=torch.float64)[:, None]

    monkeypatch.setattr("fedlogit.methods.shapfed.class_similarity", class_similarity)
    return used


def test_shapfeds_gamma_and_weight_of_the_absent_wait(federation, monkeypatch):
    fed, method = three(federation, "shapfed")
    used = cosines(monkeypatch, [1, 0, 1], [0, 1], [0, 0, 0])
    # (1 + cos) / 2 are 1, .5 and 1.
    assert shares(fed, method) == pytest.approx([0.4, 0.2, 0.4])
    # γ = .9 + .1 (.5, 1) = .95 and 1, which divide .8.
    assert shares(fed, method) == pytest.approx([0.95 / 1.95, 0, 1 / 1.95])
    kept = [0.8 * 0.95 / 1.95, 0.2, 0.8 / 1.95]
    assert fed.server_state["shapfed/weights"].tolist() == pytest.approx(kept)
    assert fed.server_state["shapfed/gamma"].tolist() == pytest.approx([0.95, 0.5, 1])
    shares(fed, method)
    assert used[1:] == [pytest.approx([0.5, 0.5]), pytest.approx(kept)]


def test_shapfed_takes_a_late_clients_first_round_as_it_is(federation, monkeypatch):
    fed, method = three(federation, "shapfed", LATE_1)
    cosines(monkeypatch, [1, 1], [1, 0, 1])
    go_on(fed, method, 2)
    assert fed.server_state["shapfed/gamma"].tolist() == pytest.approx([1, 0.5, 1])


def sinh_share(*x: float) -> list[float]:
    total = sum(math.sinh(5 * value) for value in x)
    return [math.sinh(5 * value) / total for value in x]


def rated(fed, method, monkeypatch, *accuracies: float) -> list[float]:
    """Return CFFL's reputations after one more round in which clients have these accuracies."""
    fed.start_round(fed.round + 1)
    score = torch.tensor(accuracies, dtype=torch.float64)
    monkeypatch.setattr(fed, "accuracy", lambda logits, points: score)
    return method._reputation(fed).tolist()


def test_cffls_reputation_of_the_absent_waits(federation, monkeypatch):
    fed, method = three(federation, "cffl")
    first = rated(fed, method, monkeypatch, 0.6, 0.2, 0.2)
    assert first == pytest.approx(sinh_share(0.6, 0.2, 0.2))
    both = first[0] + first[2]
    wanted = [0.8 * r / both + 0.1 for r in first[::2]]
    assert rated(fed, method, monkeypatch, 0.5, 0.5) == pytest.approx(wanted)
    kept = fed.server_state["cffl/reputation"].tolist()
    assert kept == pytest.approx([wanted[0] * both, first[1], wanted[1] * both])


def test_cffl_takes_a_late_clients_first_score_as_it_is(federation, monkeypatch):
    fed, method = three(federation, "cffl", LATE_1)
    first = rated(fed, method, monkeypatch, 0.6, 0.2)
    new = sinh_share(0.5, 0.25, 0.25)
    # The two have two thirds together; number 1 had a third, but no score to smooth.
    raw = [0.8 * first[0] * 2 / 3 + 0.2 * new[0], new[1], 0.8 * first[1] * 2 / 3 + 0.2 * new[2]]
    wanted = [r / sum(raw) for r in raw]
    assert rated(fed, method, monkeypatch, 0.5, 0.25, 0.25) == pytest.approx(wanted)


def test_cffl_keeps_its_model_where_only_removed_clients_are_there(federation):
    fed, method = three(federation, "cffl(removal=True)", LATE_1)
    fed.server_state["cffl/reputable"] = torch.tensor([False, True, False])
    before = fed.server.vector.detach().clone()
    assert shares(fed, method) == [0, 0, 0]
    assert torch.equal(fed.server.vector, before)
    assert shares(fed, method) == [0, 1, 0]
    assert not torch.equal(fed.server.vector, before)


@pytest.mark.parametrize(
    ("has_one", "wanted"),
    [
        # r = .95 (.75, .25) + .05 (.9762, .7593), of 1.036772.
        (True, [0.761309 / 1.036772, 0.275463 / 1.036772]),
        # A first reputation starts from 0: .05 * .7593.
        (False, [0.761309 / 0.799272, 0.037963 / 0.799272]),
    ],
)
def test_cgsvs_reputation_of_the_absent_waits(federation, has_one, wanted):
    fed, method = three(federation, "cgsv")
    fed.server_state["cgsv/weights"] = torch.tensor([0.6, 0.2, 0.2], dtype=torch.float64)
    fed.server_state["cgsv/rated"] = torch.tensor([True, True, has_one])
    fed.round = 1
    changes = torch.zeros(2, len(fed.server.vector))
    changes[0, 0], changes[1, :2] = 1.0, torch.tensor([0.6, 0.8])
    vectors_after(fed, changes)
    start = fed.server.vector.detach().clone()
    # u = Γ (.75 e1 + .25 (.6, .8)) = Γ (.9, .2), of length .921954: cosines .976187 and .759257.
    assert shares(fed, method) == pytest.approx([wanted[0], 0, wanted[1]], abs=1e-5)
    step = (fed.server.vector.detach() - start)[:3].tolist()
    assert step == pytest.approx([0.15 * 0.9, 0.15 * 0.2, 0], abs=1e-6)
    kept = fed.server_state["cgsv/weights"].tolist()
    assert kept == pytest.approx([0.8 * wanted[0], 0.2, 0.8 * wanted[1]], abs=1e-5)


def test_uwa_mixes_those_present(federation, monkeypatch):
    without_1 = {"schedule": [{"clients": [1], "since": 2}]}
    fed = federation(method="uwa(0.2)", clients=3, participation=without_1)
    method = methods.get(fed.spec.method)
    fed.start_round(1)
    densities = iter([0.2, 0.6])  # of clients 0 and 2: weights 1/4 and 3/4
    monkeypatch.setattr(
        "fedlogit.aggregation.uwa.Mixture.log_density",
        lambda _, z: torch.full((len(z),), math.log(next(densities)), dtype=torch.float64),
    )
    logits = fed.logits(fed.public)
    wanted = (logits[0] / 4 + 3 * logits[1] / 4).softmax(1)
    assert torch.allclose(method.aggregate(fed, logits).float(), wanted, atol=1e-6)
    weights = fed.exported["aggregation"]["weights"]
    assert weights[:, 0].tolist() == pytest.approx([0.25, 0, 0.75])


def test_in_one_shot_the_server_learns_from_those_present(federation, monkeypatch):
    fed = federation(method="feddf", rounds=1, participation={"number": 2})
    taught = []
    monkeypatch.setattr(fed, "distil_server", lambda targets, part=1: taught.append(targets))
    play(fed, methods.get(fed.spec.method))
    mean = torch.stack([fed.logits(fed.public, [client])[0] for client in fed.clients]).mean(0)
    assert len(fed.clients) == 2
    assert torch.allclose(taught[0].distributions, mean.softmax(1), atol=1e-6)
    weights = fed.exported["aggregation"]["weights"]
    assert [bool(row.any()) for row in weights] == [c in fed.clients for c in fed.all_clients]


def fitted(federation, monkeypatch, **participation):
    """Return what a meta-model was fitted to and asked, round by round, with client 3 late."""
    late = {"schedule": [{"clients": [3], "since": 2}, {"clients": [0], "until": 1}]}
    fed = federation(method="meta_model(per_class=9)", participation=late | participation)
    seen = []

    def fit_and_predict(kind, known, labels, wanted, classes, seed):
        seen.append((known.clone(), labels, wanted.clone()))
        return wanted.mean(0).softmax(1)

    monkeypatch.setattr("fedlogit.methods.meta_model.fit_and_predict", fit_and_predict)
    return play(fed, methods.get(fed.spec.method), 2), seen


def test_a_meta_model_is_fitted_anew_to_those_present(federation, monkeypatch):
    fed, seen = fitted(federation, monkeypatch)
    assert [len(known) for known, _, _ in seen] == [3, 3]  # 0, 1, 2 and then 1, 2, 3
    assert [len(wanted) for _, _, wanted in seen] == [3, 3]
    samples = methods.get(fed.spec.method)._auxiliary_samples(fed)
    owned = [torch.isin(samples, c.private) for c in fed.all_clients]
    early = owned[0] | owned[1] | owned[2]
    assert 0 < int(early.sum()) < len(samples), "client 3 holds some alone"
    assert torch.equal(seen[0][1], fed.labels(samples[early]))
    assert torch.equal(seen[1][1], fed.labels(samples)), "those of client 0 stay known"
    # Each label is a byte, sent once.
    assert fed.ledger.totals()["up"]["auxiliary_labels"] == len(samples)


def test_a_padded_meta_model_goes_on_with_what_was_last_sent(federation, monkeypatch):
    fed, ((first, _, asked), (second, _, asked_again)) = fitted(
        federation, monkeypatch, meta_model="pad"
    )
    assert len(first) == len(second) == len(asked) == 4
    assert not first[3].any(), "not heard yet"
    assert not asked[3].any()
    samples = methods.get(fed.spec.method)._auxiliary_samples(fed)
    early = torch.isin(samples, torch.cat([c.private for c in fed.all_clients[:3]]))
    assert torch.equal(second[0][early], first[0]), "client 0 has left"
    assert not second[0][~early].any(), "nobody asked it about these"
    assert torch.equal(asked_again[0], asked[0])
    assert not torch.equal(asked_again[1], asked[1])
    assert second[3].all()


def test_without_any_label_a_meta_model_is_the_average(federation, monkeypatch):
    fed = federation(method="meta_model(per_class=9)", participation={"number": 1})
    method = methods.get(fed.spec.method)
    fed.start_round(1)
    (there,) = fed.clients
    others = torch.cat([c.private for c in fed.all_clients if c is not there])
    others = others[~torch.isin(others, there.private)]
    monkeypatch.setattr(type(method), "_auxiliary_samples", lambda self, fed: others)
    logits = logs([[0.7, 0.3]], [[0.1, 0.9]])
    assert torch.allclose(method.aggregate(fed, logits[:1]), torch.tensor([[0.7, 0.3]]))
    assert "up" not in fed.ledger.totals() or not fed.ledger.totals()["up"]


WITHOUT_PEER_2 = {"schedule": [{"clients": [2], "since": 10}]}


def test_on_a_ring_a_missing_peer_leaves_a_gap(federation):
    call = "tally_train(warm_up=0, topology='ring')"
    fed, method = peers_after(1, federation, call, clients=5, participation=WITHOUT_PEER_2)
    # Peers 0, 1, 3 and 4; 1 - 2 - 3 is broken.
    assert method.neighbours(fed).astype(int).tolist() == [
        [1, 1, 0, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 1, 1],
    ]
    assert fed.ledger.totals()["up"] == {"votes": 6 * 16}, "three links, both ways"


def test_a_peer_without_neighbours_hears_itself(federation):
    call = "tally_train(warm_up=0, topology='ring')"
    who = {"schedule": [{"clients": [1, 2, 4, 5], "since": 10}]}
    fed, method = peers_after(1, federation, call, clients=6, participation=who)
    assert fed.ledger.totals()["up"] == {"votes": 0}
    logits = fed.logits(fed.probes(16))
    votes = torch.nn.functional.one_hot(logits.argmax(-1), 10).float()
    assert torch.equal(consensus_of(method, fed, logits), votes)


def test_votes_of_those_present_are_tallied(federation):
    call = "tally_train(warm_up=0)"
    fed, method = peers_after(1, federation, call, clients=5, participation=WITHOUT_PEER_2)
    assert fed.ledger.totals()["up"] == {"votes": 4 * 3 * 16}
    logits = torch.zeros(4, 1, 10)
    for peer, vote in enumerate([7, 7, 3, 7]):
        logits[peer, 0, vote] = 1.0
    assert consensus_of(method, fed, logits)[0, [3, 7]].tolist() == [0.25, 0.75]


def test_those_present_merge_and_the_others_keep_what_they_are_pulled_to(federation):
    call = "tally_train(signal='none', label_weight=0.0, warm_up=0, merge_every=1, proximal=0.1)"
    fed, method = peers_after(0, federation, call, clients=4, participation=WITHOUT_PEER_2)
    own = fed.all_clients[2].vector.detach().clone()
    go_on(fed, method)
    anchors = fed.server_state["tally/anchor"]
    assert torch.equal(anchors[2], own)
    for i in (0, 1, 3):
        assert torch.equal(fed.all_clients[i].vector, fed.all_clients[0].vector)
        assert torch.equal(anchors[i], fed.all_clients[0].vector)
    assert torch.equal(fed.all_clients[2].vector, own)
    pulled = []
    fed.train_private = lambda **given: pulled.append(given["prox_centers"])
    go_on(fed, method)
    assert torch.equal(pulled[0], anchors[[0, 1, 3]])


@pytest.mark.parametrize(("absent", "said"), [([0], [5, 6, 6]), ([2], [5, 5, 6]), ([2, 3], [5, 5])])
def test_adversaries_that_are_absent_say_nothing(federation, absent, said):
    """Of four peers the last two lie: they name the class that follows their own."""
    call = "tally_train(warm_up=0, label_weight=0.0, adversaries=2, attack='confident')"
    who = {"schedule": [{"clients": absent, "since": 3}]}
    fed, method = peers_after(0, federation, call, clients=4, participation=who)
    fed.start_round(1)
    logits = torch.zeros(len(said), 1, 10)
    logits[..., 5] = 1.0
    assert method.messages(fed, logits).flatten().tolist() == said


def test_what_an_adversary_says_at_random_does_not_depend_on_who_is_absent(federation):
    """Of four peers the last two lie, and the last says the same without the one before it."""
    call = "tally_train(warm_up=0, label_weight=0.0, adversaries=2, attack='random')"
    said = []
    for absent in ([0], [2]):
        who = {"schedule": [{"clients": absent, "since": 3}]}
        fed, method = peers_after(0, federation, call, clients=4, participation=who)
        fed.start_round(1)
        said.append(method.messages(fed, torch.zeros(3, 50, 10))[-1])
    assert torch.equal(*said)
    assert len(said[0].unique()) > 5
