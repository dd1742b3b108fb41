"""CGSV: updates of one norm, reputations by cosines, rewards in entries of the aggregate."""

import math

import pytest
import torch
from support.celm_family import FAMILY, family, one_more, vectors_after
from support.rounds import play
from support.small import small_spec

from fedlogit import methods


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
    method.init(fed)
    assert fed.server_state["cgsv/weights"].tolist() == [1 / 3] * 3, "in double precision"
    first = [0.05 / 0.101, 0.05 / 0.101, 0.001 / 0.101]
    assert one_more(fed, method) == pytest.approx(first, abs=1e-6)
    moved = fed.server.vector.detach() - start
    assert float(moved.norm()) == pytest.approx(0.05, abs=1e-5)
    # Then r = .95 r + .05, and .95 * .0099 - .05 < 0 for the third.
    raw = [0.95 * first[0] + 0.05, 0.95 * first[1] + 0.05, 0.001]
    assert one_more(fed, method) == pytest.approx([r / sum(raw) for r in raw], abs=1e-6)


def test_cgsv_weighs_updates_by_the_reputations_of_the_round_before(federation):
    fed, method = family(federation, "cgsv", clients=3, partition="iid")
    changes = torch.zeros(3, len(fed.server.vector))
    changes[:, :2] = torch.tensor([[3.0, 0.0], [5.0, 0.0], [0.0, 4.0]])
    vectors_after(fed, changes)
    method.init(fed)
    # Γ (2/3, 1/3) at first, with cosines 2, 2 and 1 over sqrt(5): reputations .4, .4 and .2.
    assert one_more(fed, method) == pytest.approx([0.4, 0.4, 0.2], abs=1e-6)
    start = fed.server.vector.detach().clone()
    one_more(fed, method)
    step = fed.server.vector.detach() - start
    assert step[:2].tolist() == pytest.approx([0.8 * 0.15, 0.2 * 0.15], abs=1e-6)


def test_cgsv_rewards_each_layer_with_its_share_of_entries(federation):
    fed, method = family(federation, "cgsv", clients=2, partition="iid")
    average = torch.arange(1.0, 1211.0)  # later layers have larger entries
    paid = method._rewards(fed, average, torch.tensor([0.75, 0.25]).double())
    quota = math.tanh(0.25) / math.tanh(0.75)  # .3856
    # mlp(16) on 8x8 digits; of 1024, 16, 160 and 10 entries the largest.
    assert torch.equal(paid[0], average)
    start = 0
    for size in (1024, 16, 160, 10):
        kept = math.ceil(quota * size)
        row = paid[1, start : start + size]
        assert row[: size - kept].tolist() == [0] * (size - kept)
        assert torch.equal(row[size - kept :], average[start + size - kept : start + size])
        start += size


def test_cgsv_pays_equally_large_entries_together_and_counts_them(federation):
    fed, method = family(federation, "cgsv", clients=2, partition="iid")
    paid = method._rewards(fed, torch.ones(1210), torch.tensor([0.9, 0.1]).double())
    assert (paid == 1).all()
    assert fed.ledger.totals()["down"]["reward"] == 2 * 8 * 1210
