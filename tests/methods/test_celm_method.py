"""CELM on digits: probing, warm-up, and contributions."""

import numpy as np
import pytest
import torch
from support.celm_family import CELM, FAMILY, contributions, family, one_more
from support.outcomes import rows
from support.rounds import play

from fedlogit.aggregation.contribution import evidence
from fedlogit.aggregation.logit_maximisation import Ascent
from fedlogit.files import load_npz, read_json
from fedlogit.methods.celm import _maximised


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
    for row in rows(folder)[:2]:
        assert 0 < float(row["seconds_probe"]) < float(row["seconds"])
    # β = .5 from 1/N: c¹ = (1/5 + c̄) / 2, so no client falls below 1/10 in round 1
    assert (c[0] >= 0.1 - 1e-9).all()


def test_evidence_is_the_same_where_a_run_ends_with_its_warm_up(train):
    """Table 4 of CIFAR-10 is of such runs."""
    exported = [
        load_npz(train(**FAMILY | given | {"export": ["evidence"]}) / "exports" / "evidence.npz")
        for given in ({"method": CELM}, {"method": "celm(steps=20, warm_up=1)", "rounds": 2})
    ]
    for name in ("evidence", "contributions"):
        assert np.array_equal(exported[0][name], exported[1][name])


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


@pytest.mark.slow
def test_celm_finds_who_holds_a_class_alone(federation):
    fed, method = family(federation, "celm(warm_up=1.0)", partition="maverick(2)", clients=4)
    play(fed, method, 4)
    rare = list(fed.roles.rare_classes)
    q = fed.server_state["celm/evidence"][-1]
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
        "fedlogit.methods.celm._maximised", lambda _fed, _models, images, *_: (given, images)
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
    final = fed.server_state["celm/images"]
    fed.round = 2
    assert torch.equal(method._images(fed), final)
    fed, method = family(federation, "celm(steps=5, warm_up=1.0, warm_start=False)")
    play(fed, method)
    first = method._images(fed)
    fed.round = 2
    second = method._images(fed)
    assert not torch.equal(second, fed.server_state["celm/images"])
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
    assert "logits of the server in logit maximisation" in result["message"]


def test_celm_contributions_move_half_way_to_the_scores_of_the_round(federation, monkeypatch):
    # Two classes of ten have evidence: shares 1, 0 and .25, .75, so scores .625 and .375.
    q = torch.zeros(2, 10)
    q[:, :2] = torch.tensor([[5.0, 1.0], [0.0, 3.0]])
    monkeypatch.setattr("fedlogit.methods.celm.evidence", lambda client, reference: q.double())
    fed, method = family(federation, "celm(steps=1, warm_up=1.0)", clients=2, partition="iid")
    method.init(fed)
    # From .5: (.5 + .625) / 2, and half way again.
    assert one_more(fed, method) == pytest.approx([0.5625, 0.4375], abs=1e-9)
    assert one_more(fed, method) == pytest.approx([0.59375, 0.40625], abs=1e-9)


def test_celm_probes_every_model_from_its_last_images(federation, monkeypatch):
    begun = []

    def maximised(_fed, models, images, classes, _ascent):
        begun.append(images.clone())
        return torch.zeros(len(models), len(classes)), images + 1

    fed, method = family(federation, "celm(warm_up=1.0)", clients=2, partition="iid")
    monkeypatch.setattr("fedlogit.methods.celm._maximised", maximised)
    play(fed, method, 2)
    assert begun[0].shape == (3, 10, 1, 8, 8), "the global model and two clients"
    assert torch.equal(begun[1], begun[0] + 1)


ASCENT = Ascent(steps=10, rate=0.05, penalty=1e-3)


def probed(fed, images):
    """Return LMProbe's logits and images of all clients."""
    return _maximised(fed, fed.clients, images, torch.arange(10), ASCENT)


@pytest.mark.parametrize("together", [1, 2, 9])
def test_probes_are_the_same_however_many_are_stacked(federation, monkeypatch, together):
    fed = federation(same_init=False)
    images = torch.randn(4, 10, *fed.data.shape, generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr("fedlogit.methods.celm.probed_together", lambda *_: False)
    alone, _ = probed(fed, images)
    monkeypatch.undo()  # perceptrons are stacked
    asked = []
    monkeypatch.setattr(
        "fedlogit.methods.celm.models_at_once",
        lambda model, part: asked.append(part.shape) or together,
    )
    stacked, final = probed(fed, images)
    assert asked == [images[0].shape]
    assert final.shape == images.shape
    assert torch.allclose(stacked, alone, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("device", "models"),
    [
        ("cpu", ["resnet_light(1)"]),
        ("cpu", ["mlp(hidden=[16])", "mlp(hidden=[8])"]),
        ("cuda", ["mlp(hidden=[16])", "mlp(hidden=[8])"]),
    ],
)
def test_convolutions_on_a_cpu_and_models_that_differ_are_probed_one_by_one(
    federation, monkeypatch, device, models
):
    fed = federation(models=models)
    images = torch.randn(4, 10, *fed.data.shape, generator=torch.Generator().manual_seed(1))
    fed.data.device = torch.device(device)
    monkeypatch.setattr("fedlogit.methods.celm.maximise_stacked", None)
    assert probed(fed, images)[0].shape == (4, 10)
