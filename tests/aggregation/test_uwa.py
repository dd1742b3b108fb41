"""UWA against numbers worked out by hand (Who to Trust eq. 5-7)."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm
from sklearn.covariance import LedoitWolf

from fedlogit.aggregation.uwa import (
    Mixture,
    by_class,
    density_weights,
    fit_classes,
    fit_em,
    fit_full,
    fit_kernel,
    no_density,
    weighted_logits,
)
from fedlogit.errors import Diverged


def test_components_are_class_means_and_population_variances():
    logits = torch.tensor([[0.0, 2.0], [4.0, 2.0], [1.0, 1.0], [1.0, 5.0]])
    labels = torch.tensor([3, 3, 7, 7])
    # class 3: mean (2, 2), variance (((0-2)² + (4-2)²)/2, 0) = (4, 0 -> floor)
    # class 7: mean (1, 3), variance (0 -> floor, ((1-3)² + (5-3)²)/2) = (floor, 4)
    mixture = fit_classes(by_class(logits, labels), floor=0.01)
    assert mixture.means.tolist() == [[2, 2], [1, 3]]
    assert mixture.variances.tolist() == [[4, 0.01], [0.01, 4]]


def test_a_class_with_one_sample_has_no_component_and_the_rest_share_its_weight():
    logits = torch.tensor([[0.0], [2.0], [100.0]])
    mixture = fit_classes(by_class(logits, torch.tensor([0, 0, 1])), floor=1e-3)
    assert mixture.means.tolist() == [[1.0]]
    # One component N(1, 1) with weight 1/1: at its mean, log density = -½ log 2π.
    assert mixture.log_density(torch.tensor([[1.0]])).item() == pytest.approx(
        -0.5 * math.log(2 * math.pi)
    )


def test_log_density_of_two_components_in_two_dimensions():
    mixture = Mixture(
        torch.tensor([[0.0, 0.0], [3.0, 0.0]]).double(),
        torch.tensor([[1.0, 4.0], [1.0, 1.0]]).double(),
    )
    # At (0, 2): first  (2π)^-1 · 1/(1·2) · exp(-½·(0 + 4/4)) = exp(-½)/(4π)
    #            second (2π)^-1 · 1       · exp(-½·(9 + 4))   = exp(-6.5)/(2π)
    expected = math.log(0.5 * (math.exp(-0.5) / (4 * math.pi) + math.exp(-6.5) / (2 * math.pi)))
    assert mixture.log_density(torch.tensor([[0.0, 2.0]])).item() == pytest.approx(expected)


def test_trust_is_the_softmax_over_clients():
    # Log-densities log 1 and log 3 at one point: weights 1/4 and 3/4.
    weights = density_weights(torch.tensor([[0.0], [math.log(3)]]).double())
    assert weights[:, 0].tolist() == pytest.approx([0.25, 0.75])
    logits = torch.tensor([[[4.0, 0.0]], [[0.0, 8.0]]])
    assert weighted_logits(logits, weights).tolist() == [pytest.approx([1.0, 6.0])]


def test_one_dominating_density_takes_all_and_equal_densities_average():
    far = density_weights(torch.tensor([[0.0], [-800.0]]).double())
    assert far[:, 0].tolist() == [1.0, 0.0]
    equal = density_weights(torch.full((4, 3), -1234.5).double())
    assert torch.equal(equal, torch.full((4, 3), 0.25).double())


def test_nobody_knowing_a_point_falls_back_to_the_average():
    weights = density_weights(torch.full((5, 2), -math.inf).double())
    assert torch.allclose(weights, torch.full((5, 2), 0.2, dtype=torch.float64), atol=1e-15)
    one = density_weights(torch.tensor([[-math.inf], [-3.0]]).double())
    assert one[:, 0].tolist() == [0.0, 1.0]


def test_weights_sum_to_one_in_float64():
    densities = torch.randn(20, 500, generator=torch.Generator().manual_seed(0)).double() * 300
    assert torch.allclose(
        density_weights(densities).sum(0), torch.ones(500).double(), atol=1e-12, rtol=0
    )


def test_an_empty_mixture_has_density_zero():
    empty = no_density(torch.tensor([[1.0, 2.0]]))
    assert torch.isneginf(empty.log_density(torch.zeros(3, 2))).all()


def test_em_finds_two_far_clusters_with_uniform_weights():
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(60, 3, generator=generator) + 20
    b = torch.randn(20, 3, generator=generator) - 20
    mixture = fit_em(torch.cat([a, b]), components=2, floor=1e-3, seed=0)
    means = mixture.means[mixture.means[:, 0].argsort()]
    assert torch.allclose(means[0], b.double().mean(0), atol=1e-6)
    assert torch.allclose(means[1], a.double().mean(0), atol=1e-6)
    # The floor is a bound, not an addition: far above it, variances are the samples' own.
    wide = mixture.variances[mixture.means[:, 0].argsort()]
    expected = torch.stack([b.double().var(0, correction=0), a.double().var(0, correction=0)])
    assert torch.allclose(wide, expected, atol=1e-6)
    # Weights 1/2 each although the clusters hold 3:1, so equal spreads give equal densities.
    at_means = mixture.log_density(means)
    spread = mixture.variances.log().sum(1)
    expected = -math.log(2) - 0.5 * (3 * math.log(2 * math.pi) + spread)
    assert torch.allclose(at_means.sort().values, expected.sort().values, atol=1e-6)


def test_a_full_covariance_by_hand():
    # Mean (0, 0); covariance ((2, 2), (2, 5)) / 2: variances (0² + 2² + (-2)² + 0²)/4 = 2 and
    # (1² + 2² + (-2)² + (-1)²)/4 = 2.5, covariance (0 + 4 + 4 + 0)/4 = 2.
    logits = torch.tensor([[0.0, 1.0], [2.0, 2.0], [-2.0, -2.0], [0.0, -1.0]])
    mixture = fit_full([logits.double()], 1e-3, shrunk=False)
    for point in ([0.0, 0.0], [1.0, -2.0]):
        expected = multivariate_normal([0, 0], [[2, 2], [2, 2.5]]).logpdf(point)
        assert mixture.log_density(torch.tensor([point])).item() == pytest.approx(expected)


def test_a_shrunk_covariance_is_ledoit_and_wolfs_and_a_singular_one_has_the_floor():
    logits = torch.randn(6, 10, generator=torch.Generator().manual_seed(0))
    shrunk = fit_full([logits.double()], 1e-9, shrunk=True)
    expected = multivariate_normal(logits.double().mean(0), LedoitWolf().fit(logits).covariance_)
    assert shrunk.log_density(logits).tolist() == pytest.approx(expected.logpdf(logits), rel=1e-5)
    # Six samples span five dimensions: five of ten variances would be 0.
    singular = fit_full([logits.double()], 1e-3, shrunk=False).variances[0]
    assert (singular[:5] == 1e-3).all()
    assert (singular[5:] > 0.01).all()


def test_a_kernel_density_is_the_mean_of_gaussians_on_the_samples():
    logits = torch.tensor([[0.0], [2.0], [10.0], [16.0], [99.0]])
    labels = torch.tensor([0, 0, 1, 1, 2])
    # Classes 0 and 1 have deviations 1 and 3; two samples in one dimension: 2^(-1/5).
    widths = np.array([1, 1, 3, 3]) * 2**-0.2
    expected = np.log(norm([0, 2, 10, 16], widths).pdf(5.0).mean())
    mixture = fit_kernel(by_class(logits, labels), 1e-3)
    assert mixture.log_density(torch.tensor([[5.0]])).item() == pytest.approx(expected)


def test_em_without_two_samples_has_no_density():
    mixture = fit_em(torch.zeros(1, 3), 2, floor=1e-3, seed=0)
    assert mixture.log_density(torch.zeros(1, 3)).tolist() == [-math.inf]
    of_two = fit_em(torch.tensor([[-1.0], [1.0]]), 1, floor=1e-3, seed=0)
    assert of_two.log_density(torch.zeros(1, 1)).item() == pytest.approx(
        -0.5 * math.log(2 * math.pi)
    )


def test_logits_too_large_for_a_mixture_are_divergence():
    """Between squares of 1e40 a variance of a few last bits of float32 is lost, and the floor.

    Whether it ends below zero depends on how a processor rounds; of twenty draws, some do.
    """
    said = []
    for seed in range(20):
        noise = torch.randn(20, 10, generator=torch.Generator().manual_seed(seed))
        try:
            fit_em(1e20 * (1 + 1e-7 * noise), 5, 1e-3, 0)
        except Diverged as error:
            said.append(str(error))
    assert set(said) == {"no mixture can be fitted to logits as large as 1.0e+20"}
