"""FedAvg, CFFL, CGSV, ShapFed and CELM: what their papers promise, on digits."""

import csv
import json

import numpy as np
import pytest
import torch
from small import small_spec

from fedlogit import methods
from fedlogit.errors import FedlogitError
from fedlogit.federation.shapley import shapley_values
from fedlogit.files import load_npz, read_json

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


@pytest.mark.parametrize("call", ["fedavg", "shapfed", "cgsv"])
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
