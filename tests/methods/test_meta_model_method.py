"""The Meta-Model on a federation: what it is trained on."""

import torch

from fedlogit import methods


def test_auxiliary_samples_come_from_private_sets(federation):
    fed = federation(method="meta_model(per_class=5)")
    method = methods.get(fed.spec.method)
    chosen = method._auxiliary_samples(fed)
    union = {i for c in fed.clients for i in c.private.tolist()}
    assert set(chosen.tolist()) <= union
    assert fed.labels(chosen).bincount(minlength=10).max() == 5
    assert torch.equal(chosen, method._auxiliary_samples(fed))
