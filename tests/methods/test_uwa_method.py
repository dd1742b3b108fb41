"""UWA in a federation: what its mixtures are fitted to."""

import numpy as np
import pytest
import torch
from support.small import small_spec

from fedlogit import methods
from fedlogit.aggregation.uwa import density_weights

FITS = ["supervised", "em", "full_covariance", "ledoit_wolf", "kernel", "flow"]


@pytest.mark.parametrize("fit", FITS)
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


def test_what_is_told_of_the_weights(federation):
    fed = federation(method="uwa")
    fed.public = torch.tensor([0, 1, 2])
    fed.class_mask = np.zeros((4, 10), bool)
    labels = fed.labels(fed.public)
    fed.class_mask[0, labels[0]] = fed.class_mask[1, labels[1]] = True
    fed.class_mask[:, labels[2]] |= labels[2] not in labels[:2]
    held = torch.as_tensor(fed.class_mask)[:, labels]
    densities = torch.arange(12.0, dtype=torch.float64).reshape(4, 3)
    weights = torch.full((4, 3), 0.25, dtype=torch.float64)
    methods.get(fed.spec.method)._record(fed, densities, weights)
    told = fed.take_log()
    assert told["log_likelihood"] == pytest.approx(float(densities[held].mean()))
    assert told["weight_on_holders"] == pytest.approx(0.25 * held.sum().item() / 3)
    assert (told["weight_max"], told["weight_over_99"]) == (0.25, 0)


def test_flows_are_fitted_with_other_draws_in_each_round(federation):
    given = {"method": "uwa(fit='flow')"}
    fed, method = federation(**given), methods.get(small_spec(**given).method)
    z = torch.randn(60, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) ** 3
    y = torch.zeros(60, dtype=torch.int64)
    densities = []
    for fed.round in (1, 1, 2):
        densities.append(method._fitted(fed, 0, z, y).log_density(z))
    assert torch.equal(densities[0], densities[1])
    assert not torch.equal(densities[0], densities[2])


@pytest.mark.parametrize("fit", [fit for fit in FITS if fit != "em"])
def test_without_two_samples_of_a_class_there_is_no_density(federation, fit):
    method = methods.get(small_spec(method=f"uwa(fit='{fit}')").method)
    density = method._fitted(federation(method="uwa"), 0, torch.zeros(2, 3), torch.tensor([0, 1]))
    assert density.log_density(torch.zeros(1, 3)).tolist() == [-torch.inf]


@pytest.mark.parametrize("fit", FITS)
def test_a_client_with_constant_logits_has_all_weight_or_none(federation, fit):
    """Clients 1 to 3 have logits with variance 4; 0 has the same everywhere, to 1 in 10,000."""
    fed = federation(method="uwa")
    draws = torch.randn(4, 40, 10, generator=torch.Generator().manual_seed(0))
    logits = torch.stack([1e-4 * draws[0], *(2 * draws[1:])])
    labels = torch.zeros(40, dtype=torch.int64)

    def weights(constant_below=0.0):
        call = f"uwa(fit='{fit}', constant_below={constant_below})"
        method = methods.get(small_spec(method=call).method)
        found = [method._fitted(fed, i, z, labels) for i, z in enumerate(logits)]
        return density_weights(
            torch.stack([d.log_density(z) for d, z in zip(found, logits, strict=True)])
        )

    assert (weights()[0] > 0.99).all()
    assert (weights(constant_below=0.01)[0] == 0).all()
    assert torch.equal(weights(constant_below=3.0), weights(constant_below=0.01))


def test_the_share_of_clients_with_a_density_is_told(federation):
    fed = federation(method="uwa")
    fed.public = torch.tensor([0, 1])
    densities = torch.zeros(4, 2, dtype=torch.float64)
    densities[3] = -torch.inf
    methods.get(fed.spec.method)._record(fed, densities, density_weights(densities))
    assert fed.take_log()["with_density"] == 0.75
