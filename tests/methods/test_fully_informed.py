"""The Fully Informed Reference: one client, all labels."""

import torch
from small import small_spec

from fedlogit import methods


def test_it_trains_on_private_and_public_samples_with_their_labels(federation, monkeypatch):
    given = {"method": "fully_informed", "clients": 1, "partition": "iid(90)"}
    fed, method = federation(**given), methods.get(small_spec(**given).method)
    trained = []
    monkeypatch.setattr(fed, "_train", lambda works, name: trained.extend(works))
    method.init(fed)
    method.round(fed, 1)
    (work,) = trained
    both = torch.cat([fed.clients[0].private, fed.public])
    assert len(both) == 150
    assert torch.equal(work.points, both)
    assert torch.equal(work.labels, fed.data.labels[both])
    assert sorted(torch.cat(work.batches[:5]).tolist()) == list(range(150)), "an epoch of 32 each"
