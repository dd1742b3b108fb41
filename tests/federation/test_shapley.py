"""Shapley values of clients, exact, from the accuracy of every coalition's average."""

import json
from dataclasses import replace

import pytest
import torch
from support.celm_family import CELM, FAMILY, family
from support.rounds import play

from fedlogit.coalitions import shapley_values
from fedlogit.engine.evaluation import score
from fedlogit.federation.shapley import shapley
from fedlogit.files import load_npz


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
    alone = [score(fed.test_counts([client])).per_client[0] for client in fed.clients]
    assert [found[1 << i] for i in range(5)] == pytest.approx(alone)
    assert len(set(found.tolist())) > 5
    pair = replace(before, vector=fed.vectors()[[1, 3]].mean(0))
    fed.server.load(pair)
    assert found[0b1010] == pytest.approx(
        score(fed.test_counts([fed.server])).per_client[0], abs=5e-3
    )
