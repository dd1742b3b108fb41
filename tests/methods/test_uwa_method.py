"""UWA in a federation: what its mixtures are fitted to."""

import pytest
import torch
from support.small import small_spec

from fedlogit import methods


@pytest.mark.parametrize("fit", ["supervised", "em"])
def test_mixtures_are_fitted_to_samples_that_are_not_trained_on(federation, monkeypatch, fit):
    given = {"method": f"uwa(validation=0.2, fit='{fit}')"}
    fed, method = federation(**given), methods.get(small_spec(**given).method)
    asked = []
    own_logits = fed.own_logits
    monkeypatch.setattr(
        fed, "own_logits", lambda points: asked.extend(points) or own_logits(points)
    )
    method._mixtures(fed)
    # A fifth of 90 private samples.
    assert [len(points) for points in asked] == [18] * 4
    for client, points in zip(fed.clients, asked, strict=True):
        assert not torch.isin(points, client.private).any()
        held = fed.counts[client.index] > 0
        assert held[fed.labels(points)].all(), "its own samples"
