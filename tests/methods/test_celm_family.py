"""FedAvg, CFFL, CGSV, ShapFed and CELM: what their papers promise, on digits."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from small import small_spec

from fedlogit import methods
from fedlogit.aggregation.contribution import evidence
from fedlogit.errors import FedlogitError
from fedlogit.federation.evaluation import score
from fedlogit.federation.shapley import shapley, shapley_values
from fedlogit.files import load_npz, read_json
from fedlogit.methods.model_federation import checked

FAMILY = {
    "clients": 5,
    "partition": "pls(2, 80, 5)",
    "public": None,
    "rounds": 4,
    "local": {"epochs": 1},
    "batch": 16,
    "optimizer": {"name": "sgd", "lr": 0.1, "lifetime": "round"},
    "same_init": True,
    "seed": 42,
}
CELM = "celm(steps=20, warm_up=0.5)"


def rows(folder) -> list[dict[str, str]]:
    with (folder / "rounds.csv").open() as file:
        return list(csv.DictReader(file))


def contributions(folder) -> np.ndarray:
    table = rows(folder)
    names = [k for k in table[0] if k.startswith("contribution_")]
    return np.array([[float(row[k]) for k in names] for row in table])


def play(fed, method, rounds=1):
    method.init(fed)
    for _ in range(rounds):
        fed.round += 1
        fed.ledger.start(fed.round)
        method.round(fed, fed.round)
    return fed


def family(federation, call, **changes):
    given = FAMILY | {"method": call} | changes
    return federation(**given), methods.get(small_spec(**given).method)


@pytest.mark.parametrize("call", ["fedavg", "cffl", "cgsv", "shapfed", CELM])
def test_contributions_are_a_distribution_and_the_global_model_learns(train, call):
    folder = train(**FAMILY | {"method": call})
    c = contributions(folder)
    assert c.shape == (4, 5)
    assert (c >= 0).all()
    assert c.sum(1) == pytest.approx(1)
    result = read_json(folder / "result.json")
    assert len(result["final"]["per_client"]) == 1, "one global model is tested"
    assert np.array(result["split"]["counts"]).shape == (5, 10)
    if call != "cgsv":  # moves at most 0.15 a round
        assert result["final"]["accuracy"] > 0.3


@pytest.mark.parametrize("call", ["fedavg", "cffl", "cgsv", "shapfed", CELM])
def test_identical_clients_count_alike(federation, call):
    fed, method = family(federation, call, clients=3, partition="iid")
    for client in fed.clients[1:]:
        client.private, client.index = fed.clients[0].private, 0  # the same batches too
    play(fed, method, 2)
    log = fed.take_log()
    assert [log[f"contribution_{i}"] for i in range(3)] == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_fedavg_is_the_mean_of_models(federation):
    fed, method = family(federation, "fedavg")
    play(fed, method)
    assert torch.allclose(fed.server.vector, fed.vectors().mean(0), atol=1e-6)
    fed, method = family(federation, "fedavg(weighting='samples')", partition="sls(2)")
    play(fed, method)
    sizes = torch.tensor([c.samples for c in fed.clients]).double()
    expected = (sizes / sizes.sum()).float() @ fed.vectors()
    assert torch.allclose(fed.server.vector, expected, atol=1e-6)


def test_cgsv_updates_have_norm_gamma_and_the_best_client_gets_everything(federation):
    fed, method = family(federation, "cgsv(norm=0.15)")
    before = [c.vector.detach().clone() for c in fed.clients]
    start = fed.server.vector.detach().clone()
    play(fed, method)
    step = fed.server.vector.detach() - start
    assert float(step.norm()) <= 0.15 + 1e-5, "an average of vectors of norm Γ is no longer"
    log = fed.take_log()
    best = max(range(5), key=lambda i: log[f"contribution_{i}"])
    # q_max = 1: that client's model is its own start plus all of the aggregate.
    own = fed.clients[best].vector.detach() - before[0]
    assert torch.allclose(own, step, atol=1e-6)
    worst = min(range(5), key=lambda i: log[f"contribution_{i}"])
    got = fed.clients[worst].vector.detach() - before[0]
    assert 0 < int((got != 0).sum()) < int((step != 0).sum())


def vectors_after(fed, changes):
    """Let training change each client's parameters by its row of `changes`."""

    def train_private():
        fed.load_vectors(fed.vectors() + changes)

    fed.train_private = train_private


@pytest.mark.parametrize(("normalise", "short"), [("always", 0.15), ("above", 0.03)])
def test_each_cgsv_update_is_scaled_to_gamma(normalise, short):
    method = methods.get(small_spec(**FAMILY | {"method": f"cgsv(normalise='{normalise}')"}).method)
    # Norms 5 and 0.03; Γ = 0.15.
    updates = method._normalised(torch.tensor([[3.0, 4.0], [0.0, 0.03], [0.0, 0.0]]))
    assert updates[0].tolist() == pytest.approx([0.09, 0.12], abs=1e-6)
    assert updates[1].tolist() == pytest.approx([0, short], abs=1e-6)
    assert updates[2].tolist() == [0, 0]


def test_cgsv_clamps_reputations_by_hand(federation):
    fed, method = family(federation, "cgsv", clients=3, partition="iid")
    direction = torch.nn.functional.normalize(torch.ones_like(fed.clients[0].vector), dim=0)
    vectors_after(fed, torch.stack([direction, direction, -direction]))
    start = fed.server.vector.detach().clone()
    # u = (1 + 1 - 1) / 3 Γ, cosines 1, 1, -1; r = 0.05 of them, at least 0.001: of .101 in all.
    play(fed, method)
    first = [0.05 / 0.101, 0.05 / 0.101, 0.001 / 0.101]
    log = fed.take_log()
    assert [log[f"contribution_{i}"] for i in range(3)] == pytest.approx(first, abs=1e-6)
    moved = fed.server.vector.detach() - start
    assert float(moved.norm()) == pytest.approx(0.05, abs=1e-5)
    # Then r = .95 r + .05, and .95 * .0099 - .05 < 0 for the third.
    fed.round = 2
    fed.ledger.start(2)
    method.round(fed, 2)
    raw = [0.95 * first[0] + 0.05, 0.95 * first[1] + 0.05, 0.001]
    log = fed.take_log()
    second = [log[f"contribution_{i}"] for i in range(3)]
    assert second == pytest.approx([r / sum(raw) for r in raw], abs=1e-6)


def reputations(federation, monkeypatch, call):
    """Return CFFL's reputations of two rounds: accuracies .6 and .2, then .5 and .5."""
    fed, method = family(federation, call, clients=2, partition="iid")
    method.init(fed)
    found = []
    for accuracy in ([0.6, 0.2], [0.5, 0.5]):
        score = torch.tensor(accuracy, dtype=torch.float64)
        monkeypatch.setattr(fed, "accuracy", lambda logits, points, score=score: score)
        found.append(method._reputation(fed).tolist())
    return found


def sinh_share(*x: float) -> list[float]:
    total = sum(math.sinh(5 * value) for value in x)
    return [math.sinh(5 * value) / total for value in x]


def test_cffl_reputations_by_hand(federation, monkeypatch):
    # Shares of accuracy are .75 and .25; sinh(3.75) = 21.249 and sinh(1.25) = 1.602.
    first, second = reputations(federation, monkeypatch, "cffl")
    assert first == pytest.approx([21.2488 / 22.8507, 1.6019 / 22.8507], abs=1e-4)
    assert first == pytest.approx(sinh_share(0.75, 0.25))
    assert second == pytest.approx([0.8 * first[0] + 0.1, 0.8 * first[1] + 0.1])


def test_cffl_fed_back_by_hand(federation, monkeypatch):
    # r starts at 0: sinh of 5 * .2 * .75 and 5 * .2 * .25; then of .8 r + .2 * .5.
    first, second = reputations(federation, monkeypatch, "cffl(feedback=True)")
    assert first == pytest.approx(sinh_share(0.15, 0.05))
    assert second == pytest.approx(sinh_share(0.8 * first[0] + 0.1, 0.8 * first[1] + 0.1))


@pytest.mark.parametrize(
    ("call", "first", "second"),
    [
        # (1 + cos) / 2: means .875 and .625, of 1.5. Then cosines 0: .9 of the old and .1 * .5.
        ("shapfed", [0.875 / 1.5, 0.625 / 1.5], [0.8375 / 1.45, 0.6125 / 1.45]),
        # Cosines as they are: means .75 and .25. Then .9 of the old.
        ("shapfed(cosine='raw')", [0.75, 0.25], [0.75, 0.25]),
        ("shapfed(smoothing=0.5)", [0.875 / 1.5, 0.625 / 1.5], [0.6875 / 1.25, 0.5625 / 1.25]),
    ],
)
def test_shapfed_weights_by_hand(federation, monkeypatch, call, first, second):
    fed, method = family(federation, call, clients=2, partition="iid")
    method.init(fed)
    for r, cosines, expected in (
        (1, [[1.0, 0.5], [0.5, 0.0]], first),
        (2, [[0.0, 0.0], [0.0, 0.0]], second),
    ):
        similar = torch.tensor(cosines, dtype=torch.float64)
        monkeypatch.setattr(
            "fedlogit.methods.shapfed.class_similarity", lambda heads, weights, found=similar: found
        )
        fed.round = r
        fed.ledger.start(r)
        method.round(fed, r)
        log = fed.take_log()
        assert [log["contribution_0"], log["contribution_1"]] == pytest.approx(expected)


def test_shapfed_gives_a_maverick_less_than_its_share_and_with_raw_cosines_next_to_nothing(
    federation,
):
    found = {}
    for cosine in ("half", "raw"):
        call = f"shapfed(cosine='{cosine}')"
        fed = play(*family(federation, call, partition="maverick"))
        found[cosine] = fed.take_log()["contribution_0"]
    assert found["raw"] < 0.05 < found["half"] < 0.2


def test_cffl_removes_for_good(federation):
    # A client with a single class is far below a third of an equal share under a steep sinh.
    call = "cffl(alpha=30, removal=True, feedback=True)"
    fed, method = family(federation, call, partition="sls(1)")
    method.init(fed)
    gone: set[int] = set()
    for r in range(1, 5):
        fed.round = r
        fed.ledger.start(r)
        method.round(fed, r)
        out = {i for i, ok in enumerate(fed.memory["cffl/reputable"].tolist()) if not ok}
        assert gone <= out, "removed clients stay removed"
        gone = out
        log = fed.take_log()
        assert all(log[f"contribution_{i}"] == 0 for i in gone)
    assert gone
    assert len(gone) < 5


def test_cffl_sends_few_entries_if_sparse(federation):
    fed, method = family(federation, "cffl(sparse=True, server_weights='sum', upload=0.1)")
    play(fed, method)
    moved = fed.vectors() - fed.server.vector
    size = len(fed.server.vector)
    # value and index, 8 bytes, for a tenth of the entries, from each of 5 clients
    assert fed.ledger.totals()["up"]["update"] == 5 * 8 * int(0.1 * size)
    assert moved.abs().max() < 1


def test_celm_freezes_after_warm_up_and_exports_its_evidence(train):
    folder = train(**FAMILY | {"method": CELM, "export": ["evidence", "probes"]})
    c = contributions(folder)
    assert not np.array_equal(c[0], c[1]), "two rounds of warm-up"
    assert np.array_equal(c[1], c[2])
    assert np.array_equal(c[1], c[3])
    kept = load_npz(folder / "exports" / "evidence.npz")
    assert kept["evidence"].shape == (2, 5, 10)
    assert kept["contributions"] == pytest.approx(c[:2])
    assert load_npz(folder / "exports" / "probes.npz")["images"].shape == (6, 10, 1, 8, 8)
    # β = .5 from 1/N: c¹ = (1/5 + c̄) / 2, so no client falls below 1/10 in round 1
    assert (c[0] >= 0.1 - 1e-9).all()


def test_celm_sends_no_head_during_warm_up(train):
    folder = train(**FAMILY | {"method": CELM})
    sent = [int(row["bytes_down.model"]) for row in rows(folder)]
    # mlp(16) on 8x8 digits: 64*16 + 16 + 16*10 + 10 = 1,210 parameters, 170 of them the head
    assert sent == [5 * 4 * 1040] * 2 + [5 * 4 * 1210] * 2
    assert [int(row["bytes_up.model"]) for row in rows(folder)] == [5 * 4 * 1210] * 4


def test_celm_clients_keep_their_heads_during_warm_up(federation):
    fed, method = family(federation, CELM)
    play(fed, method)
    heads = [c.head_rows(c.vector.detach()).clone() for c in fed.clients]
    method.broadcast(fed, fed.server.state())  # of round 1: warm-up
    for client, head in zip(fed.clients, heads, strict=True):
        assert torch.equal(client.head_rows(client.vector.detach()), head)
        backbone = ~client.head_mask()
        assert torch.equal(client.vector[backbone], fed.server.vector[backbone])
    fed.round = 3
    method.broadcast(fed, fed.server.state())
    assert all(torch.equal(c.vector, fed.server.vector) for c in fed.clients)


def test_celm_finds_who_holds_a_class_alone(federation):
    fed, method = family(federation, "celm(warm_up=1.0)", partition="maverick(2)", clients=4)
    play(fed, method, 4)
    rare = list(fed.roles.rare_classes)
    q = fed.memory["celm/evidence"][-1]
    shares = q / q.sum(0)
    assert (shares[:, rare].argmax(0) == 0).all(), "client 0 alone holds them"


def test_celm_without_any_evidence_keeps_contributions(federation, monkeypatch):
    fed, method = family(federation, CELM)
    monkeypatch.setattr(
        "fedlogit.methods.celm.evidence", lambda client, reference: torch.zeros_like(client)
    )
    play(fed, method)
    log = fed.take_log()
    assert log["evidence"] == 0
    assert [log[f"contribution_{i}"] for i in range(5)] == [0.2] * 5


def test_celm_logs_a_class_in_which_nobody_has_evidence(federation, monkeypatch):
    def without_class_3(client, reference):
        q = evidence(client, reference) + 1
        q[:, 3] = 0
        return q

    fed, method = family(federation, CELM)
    monkeypatch.setattr("fedlogit.methods.celm.evidence", without_class_3)
    play(fed, method)
    log = fed.take_log()
    assert log["classes_without_evidence"] == 1
    assert log["evidence"] > 0
    assert sum(log[f"contribution_{i}"] for i in range(5)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("debias", "expected"), [(True, [[2, 0], [0, 1]]), (False, [[4, 1], [0, 3]])]
)
def test_celm_debias_subtracts_the_global_models_mean_logit(
    federation, monkeypatch, debias, expected
):
    # The global model's logits 1 and 3 have mean 2.
    given = torch.tensor([[1.0, 3.0], [4.0, 1.0], [-1.0, 3.0]])
    call = f"celm(debias={debias}, classes_per_round=2)"
    fed, method = family(federation, call, clients=2, partition="iid")
    method.init(fed)
    fed.round = 1
    monkeypatch.setattr(
        fed, "maximise_logits", lambda models, images, classes, **_: (given, images)
    )
    q = method._evidence(fed)
    probed = method._classes(fed)
    assert q[:, probed].tolist() == expected


def test_celm_without_local_heads_sends_everything(federation):
    fed, method = family(federation, "celm(steps=5, warm_up=1.0, local_heads=False)")
    play(fed, method)
    assert fed.ledger.totals()["down"]["model"] == 5 * 4 * 1210
    method.broadcast(fed, fed.server.state())
    assert all(torch.equal(c.vector, fed.server.vector) for c in fed.clients)


def test_celm_warm_start_goes_on_from_the_last_images(federation):
    fed, method = family(federation, "celm(steps=5, warm_up=1.0)")
    play(fed, method)
    final = fed.memory["celm/images"]
    fed.round = 2
    assert torch.equal(method._images(fed), final)
    fed, method = family(federation, "celm(steps=5, warm_up=1.0, warm_start=False)")
    play(fed, method)
    first = method._images(fed)
    fed.round = 2
    second = method._images(fed)
    assert not torch.equal(second, fed.memory["celm/images"])
    assert not torch.equal(second, first), "new noise each round"
    assert abs(float(second.mean())) < 0.1
    assert float(second.std()) == pytest.approx(1, abs=0.1)


def test_celm_on_a_vision_transformer(train):
    given = {"models": ["vit_tiny(layers=1, width=8)"], "export": ["evidence"], "rounds": 2}
    folder = train(**FAMILY | given | {"method": CELM})
    assert contributions(folder).sum(1) == pytest.approx(1)
    assert (load_npz(folder / "exports" / "evidence.npz")["evidence"] >= 0).all()


def test_celm_on_a_subset_of_classes(train):
    call = "celm(steps=5, warm_up=1.0, classes_per_round=4)"
    folder = train(**FAMILY | {"method": call, "export": ["evidence"]})
    q = load_npz(folder / "exports" / "evidence.npz")["evidence"]
    assert (~np.isnan(q)).any(1).sum(1).tolist() == [4] * 4
    assert len({tuple(np.flatnonzero(~np.isnan(r[0]))) for r in q}) > 1, "drawn anew each round"


def test_nan_logits_end_the_run_as_diverged(train):
    folder = train(**FAMILY | {"method": "celm(steps=3, rate=10, penalty=1e38)"})
    result = read_json(folder / "result.json")
    assert result["status"] == "diverged"
    assert "logit maximisation" in result["message"]


def test_contributions_that_do_not_sum_to_one_are_refused(federation, monkeypatch):
    fed, method = family(federation, "fedavg")
    monkeypatch.setattr(type(method), "contributions", lambda self, fed: [0.5] * 5)
    with pytest.raises(FedlogitError, match=r"contributions .* sum to 2.5, not to 1"):
        play(fed, method)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "celm(warm_up=1.5)"}, "warm_up = 1.5"),
        ({"method": "celm(steps=0)"}, "steps = 0"),
        ({"method": "celm(rate=-1)"}, "rate = -1"),
        ({"method": "celm", "clients": 1, "partition": "iid"}, "clients = 1: method celm needs 2"),
        ({"method": "fedavg", "models": ["mlp", "mlp(hidden=[8])"]}, "need one architecture"),
        ({"method": "fedavg", "export": ["evidence"]}, "export = 'evidence'"),
        ({"method": "average", "public": {"size": 60}, "export": ["shapley"]}, "shapley"),
        ({"method": "fedavg", "clients": 11, "export": ["shapley"]}, "at most 10 clients"),
    ],
)
def test_bad_input_is_one_clear_line(changes, message):
    with pytest.raises(FedlogitError, match=message.replace("(", r"\(")) as caught:
        small_spec(**FAMILY | changes)
    assert "\n" not in str(caught.value)


def test_a_model_without_a_known_head_is_refused(federation):
    fed, method = family(federation, CELM)
    for client in [*fed.clients, fed.server]:
        client.model.head = "classifier"
    with pytest.raises(FedlogitError, match="head = 'classifier' is no layer with parameters"):
        play(fed, method)


def test_shapley_values_by_hand():
    # The glove game: v = 1 for {0, 1}, {0, 2} and {0, 1, 2}, else 0. Orders in which each completes
    # a pair: client 0 in 4 of 6, clients 1 and 2 in 1 of 6 each.
    def worth(members) -> float:
        return float(0 in members and len(members) > 1)

    assert shapley_values(worth, 3) == pytest.approx([4 / 6, 1 / 6, 1 / 6])


def test_shapley_of_a_run_sums_to_what_all_are_worth(train):
    folder = train(**FAMILY | {"method": "fedavg", "export": ["shapley"]})
    kept = load_npz(folder / "exports" / "shapley.npz")
    final = json.loads((folder / "result.json").read_text())["final"]["accuracy"]
    assert kept["accuracy"].shape == (32,)
    assert kept["accuracy"][0] == 0.1
    # The last coalition is everybody: the uniform average, which is FedAvg's own model.
    assert kept["accuracy"][-1] == pytest.approx(final)
    assert kept["values"].sum() == pytest.approx(final - 0.1)


@pytest.mark.parametrize("call", ["fedavg", "cgsv(norm=3)", CELM])
def test_a_coalition_is_worth_the_average_of_its_members(federation, call):
    fed, method = family(federation, call)
    play(fed, method)
    before = fed.server.state()
    found = shapley(fed)["accuracy"]
    assert torch.equal(fed.server.state().vector, before.vector)
    alone = [score(fed.marks([client])).per_client[0] for client in fed.clients]
    assert [found[1 << i] for i in range(5)] == pytest.approx(alone)
    assert len(set(found.tolist())) > 5
    pair = replace(before, vector=fed.vectors()[[1, 3]].mean(0))
    fed.server.load(pair)
    assert found[0b1010] == pytest.approx(score(fed.marks([fed.server])).per_client[0], abs=5e-3)


def test_a_negative_share_is_refused():
    with pytest.raises(FedlogitError, match=r"method x: contributions .* are negative"):
        checked([1.5, -0.5], "x")
