"""CFFL: reputations from held-out samples, whole models or clipped, sparse updates."""

import math

import pytest
import torch
from support.celm_family import family, one_more, vectors_after
from support.refusals import refused
from support.rounds import play
from support.small import small_spec


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


def test_cffl_removes_for_good(federation):
    # A client with a single class is far below a third of an equal share under a steep sinh.
    call = "cffl(alpha=30, removal=True, feedback=True)"
    fed, method = family(federation, call, partition="sls(1)")
    method.init(fed)
    gone: set[int] = set()
    for _ in range(4):
        shares = one_more(fed, method)
        out = {i for i, ok in enumerate(fed.server_state["cffl/reputable"].tolist()) if not ok}
        assert gone <= out, "removed clients stay removed"
        gone = out
        assert all(shares[i] == 0 for i in gone)
    assert gone
    assert len(gone) < 5


def test_cffl_sends_few_entries_if_sparse(federation):
    call = "cffl(sparse=True, server_weights='sum', upload=0.1, clip=100)"
    fed = play(*family(federation, call))
    # A value and its index, 8 bytes, for a tenth of 1,210 entries, from each of 5 clients.
    assert fed.ledger.totals()["up"]["update"] == 5 * 8 * 121


def test_cffl_rounds_the_number_of_entries_down_and_sends_as_many_of_who_changed_fewer(federation):
    call = "cffl(sparse=True, server_weights='sum', upload=0.0999)"
    fed, method = family(federation, call, clients=2, partition="iid")
    changes = torch.linspace(0.001, 0.005, 1210).repeat(2, 1)
    changes[1, 3:] = 0
    vectors_after(fed, changes)
    play(fed, method)
    # 120.9 of 1,210 entries are 120; client 1 has three that are not 0, and sends zeros, too.
    assert fed.ledger.totals()["up"]["update"] == 8 * 2 * 120


def test_cffl_sends_all_entries_at_the_clip(federation):
    call = "cffl(sparse=True, server_weights='sum', upload=0.1)"
    fed, method = family(federation, call, clients=2, partition="iid")
    start = fed.server.vector.detach().clone()
    changes = torch.linspace(0.001, 0.005, 1210).repeat(2, 1)
    changes[0, :200] = 1.0
    vectors_after(fed, changes)
    play(fed, method)
    kept = fed.vectors() - start
    # A tenth of 1,210 are 121. Client 0 has 200 at the clip of .01; client 1 has none.
    assert (kept != 0).sum(1).tolist() == [200, 121]
    assert kept[0, :200].tolist() == pytest.approx([0.01] * 200, abs=1e-6)
    assert fed.ledger.totals()["up"]["update"] == 8 * (200 + 121)


def test_cffl_scores_everybody_on_all_held_out_samples(federation, monkeypatch):
    asked = []

    def accuracy(logits, points):
        asked.append(points)
        return torch.ones(len(logits)).double()

    fed, method = family(federation, "cffl", clients=2, partition="iid")
    monkeypatch.setattr(fed, "accuracy", accuracy)
    play(fed, method)
    trained_on = torch.cat([client.private for client in fed.clients])
    everything = torch.cat([trained_on, asked[0]])
    assert not torch.isin(asked[0], trained_on).any()
    assert everything.sort().values.tolist() == list(range(len(fed.data.labels)))


def test_cffl_clips_updates_and_adds_up_those_of_the_reputable(federation):
    call = "cffl(sparse=True, server_weights='sum', upload=1, clip=0.01)"
    fed, method = family(federation, call, clients=3, partition="iid")
    changes = torch.zeros(3, len(fed.server.vector))
    # Clipped to ±.01: .01, -.01, .002; client 2 is out.
    changes[:, :3] = torch.tensor([[5.0, -5.0, 0.002], [0.02, 0.004, 0.0], [1.0, 1.0, 1.0]])
    vectors_after(fed, changes)
    method.init(fed)
    fed.server_state["cffl/reputable"] = torch.tensor([True, True, False])
    start = fed.server.vector.detach().clone()
    one_more(fed, method)
    step = fed.server.vector.detach() - start
    assert step[:4].tolist() == pytest.approx([0.02, -0.006, 0.002, 0], abs=1e-6)


@pytest.mark.parametrize(("given", "default"), [("clip=0.001", 0.01), ("upload=0.5", 0.1)])
def test_settings_of_sparse_updates_are_refused_without_them(given, default):
    key, value = given.split("=")
    said = f"{key} = {value} has no effect without sparse=True; leave it out (or at {default})"
    with refused(said):
        small_spec(method=f"cffl({given})")
    kept = small_spec(method=f"cffl({given}, sparse=True)").method.params
    assert kept[key] == float(value)
    assert small_spec(method=f"cffl({key}={default})") == small_spec(method="cffl")
