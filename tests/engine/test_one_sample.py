"""Batch norm has no statistics of a single sample: one line says who has it, and when."""

from __future__ import annotations

import pytest
from support.refusals import refused

from fedlogit import methods
from fedlogit.methods import celm

ENGINES = ("loop", "unpadded", "stacked")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [1, 2])
def test_in_training(federation, engine, count):
    fed = federation(models=["resnet18"], engine=engine)
    fed.start_round(1)
    few = fed.clients[1 : 1 + count]
    for client in few:
        client.private = client.private[:1]
    with fed.restricted_to(few):
        with refused("model resnet18: client 1 has a batch of one sample in private training, "):
            fed.train_private()
        with refused("model resnet18: client 1 has a batch of one sample in distillation, "):
            fed.distil(fed.public[:1], fed.logits(fed.public[:1])[0].softmax(-1))


@pytest.mark.parametrize("engine", ENGINES)
def test_in_prediction(federation, engine):
    """Running statistics do without a second sample, a batch's own do not."""
    keeps, none = (
        federation(models=[f"resnet18(batch_stats={v})"], engine=engine) for v in (False, True)
    )
    one = [keeps.public[:1]] * len(keeps.clients)
    assert [len(logits) for logits in keeps.own_logits(one)] == [1] * len(one)
    said = "model resnet18: client 0 has a batch of one sample in prediction, "
    with refused(said):
        none.own_logits(one)
    with refused(said):
        none.logits(none.public[:1])


@pytest.mark.parametrize("together", [False, True])
def test_in_logit_maximisation(federation, monkeypatch, together):
    monkeypatch.setattr(celm, "probed_together", lambda *_: together)
    model, call = "resnet18(batch_stats=True)", "celm(steps=1, classes_per_round=1)"
    changes = {"partition": "dir_client(0.5)", "public": None, "local": {"epochs": 1}}
    fed = federation(models=[model], method=call, **changes)
    method = methods.get(fed.spec.method)
    method.init(fed)
    fed.start_round(1)
    with refused("has a batch of one sample in logit maximisation, "):
        method.contributions(fed)
