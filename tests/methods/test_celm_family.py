"""FedAvg, CFFL, CGSV, ShapFed and CELM: what all of them promise, on digits."""

import math

import numpy as np
import pytest
import torch
from support.celm_family import CELM, FAMILY, contributions, family
from support.rounds import play
from support.small import small_spec

from fedlogit.errors import Diverged, FedlogitError
from fedlogit.files import read_json
from fedlogit.methods.model_federation import check_shares


@pytest.mark.slow
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


def test_a_negative_share_is_refused():
    with pytest.raises(FedlogitError, match=r"method x: contributions .* are negative"):
        check_shares([1.5, -0.5], "x")
    with pytest.raises(Diverged, match=r"method x: contributions \[nan, 1.0\] are not finite"):
        check_shares([math.nan, 1.0], "x")


BATCH_NORM = {"models": ["resnet_light(n=1)"], "clients": 2, "rounds": 2}


def buffers(client):
    return client.state().buffers


@pytest.mark.parametrize("call", ["cgsv", "cffl(server_weights='sum')", "cffl(sparse=True)"])
def test_statistics_of_batch_norm_are_averaged_as_fedavgs_are_and_counted(federation, call):
    fed, method = family(federation, call, **BATCH_NORM)
    method.init(fed)
    first = buffers(fed.server).clone()
    trained, train = [], fed.train_private

    def train_private():
        train()
        trained.append(torch.stack([buffers(client) for client in fed.clients]))

    fed.train_private = train_private
    fed.start_round(1)
    method.round(fed, 1)
    assert not torch.equal(buffers(fed.server), first)
    if "sparse" not in call:  # there the weights of the first round are those of accuracies
        assert torch.allclose(buffers(fed.server), trained[0].mean(0), atol=1e-6)
    sent = fed.ledger.totals()["up"]
    if method.name == "cgsv":
        for client in fed.clients:
            assert torch.equal(buffers(client), buffers(fed.server))
        assert sent["update"] == 2 * 4 * (len(fed.server.vector) + len(first))
        assert fed.ledger.totals()["down"]["reward"] >= 2 * 4 * len(first)
    elif "sparse" in call:
        assert sent["update"] == 2 * (8 * int(0.1 * len(fed.server.vector)) + 4 * len(first))
    else:
        assert sent == {"model": 2 * 4 * (len(fed.server.vector) + len(first))}
