"""The Fully Informed Reference: one client, all labels."""

import torch
from support.refusals import refused
from support.small import small_spec

from fedlogit import methods


def test_it_trains_on_private_and_public_samples_with_their_labels(federation, monkeypatch):
    given = {"method": "fully_informed", "clients": 1, "partition": "iid(90)"}
    fed, method = federation(**given), methods.get(small_spec(**given).method)
    trained = []
    monkeypatch.setattr(fed, "_train", lambda tasks: trained.extend(tasks) or [0.0])
    method.init(fed)
    method.round(fed, 1)
    (task,) = trained
    both = torch.cat([fed.clients[0].private, fed.public])
    assert len(both) == 150
    assert torch.equal(task.indices, both)
    assert torch.equal(task.labels, fed.data.labels[both])
    assert sorted(torch.cat(task.batches[:5]).tolist()) == list(range(150)), "an epoch of 32 each"


def test_without_public_samples_it_would_be_local_training():
    with refused("method fully_informed needs"):
        small_spec(method="fully_informed", clients=1, partition="iid(90)", public=None)
