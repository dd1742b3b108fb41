"""A flow's density: first the paper's; trained it is proper, and better where logits bend."""

import math

import pytest
import torch

from fedlogit.aggregation.flow import fit_flow
from fedlogit.aggregation.uwa import fit_classes


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def bent(n: int, seed: int) -> torch.Tensor:
    """Return samples around a parabola, which no Gaussian is near."""
    x = torch.randn(n, 2, generator=generator(seed), dtype=torch.float64)
    x[:, 1] = x[:, 0] ** 2 + 0.1 * x[:, 1]
    return x


# With 16 classes, the last layer has as many outputs as those before it.
@pytest.mark.parametrize("classes", [3, 16])
def test_before_training_it_is_the_papers_diagonal_gaussian(classes):
    scale = torch.tensor([1.0, 5.0, 0.01]).repeat(6)[:classes]
    logits = torch.randn(40, classes, generator=generator(1)) * scale
    labels = torch.arange(40) % 2
    groups = [logits.double()[labels == c] for c in (0, 1)]
    paper = fit_classes(groups, 1e-3)
    flow = fit_flow(groups, 1e-3, generator(), steps=0)
    torch.testing.assert_close(flow.log_density(logits), paper.log_density(logits))


def test_it_describes_samples_that_it_has_not_seen_better_than_a_gaussian_does():
    seen, unseen = bent(400, 2), bent(400, 3)
    flow = fit_flow([seen], 1e-3, generator())
    paper = fit_classes([seen], 1e-3)
    gain = flow.log_density(unseen).mean() - paper.log_density(unseen).mean()
    # The bend holds log(deviation of x² over 0.1) ≈ log 14 ≈ 2.6 nats; some of it is found.
    assert gain > 0.4


def test_it_stops_where_samples_kept_for_that_say_so():
    # Twenty Gaussian samples in ten dimensions: there is nothing to learn but their noise.
    few = torch.randn(20, 10, generator=generator(9), dtype=torch.float64)
    more = torch.randn(500, 10, generator=generator(10), dtype=torch.float64)
    paper = fit_classes([few], 1e-3).log_density(more).mean()
    assert fit_flow([few], 1e-3, generator()).log_density(more).mean() > paper - 0.5


def test_classes_without_a_fifth_sample_keep_none_and_are_the_papers():
    few = [torch.randn(4, 3, generator=generator(11), dtype=torch.float64) for _ in range(2)]
    none, some = (fit_flow(few, 1e-3, generator(), steps=steps) for steps in (0, 50))
    assert torch.equal(none.log_density(few[0]), some.log_density(few[0]))


def test_densities_sum_to_one_over_the_plane():
    flow = fit_flow([bent(60, 4), bent(60, 5) + 4], 1e-3, generator())
    step = 0.1
    side = torch.arange(-15, 25, step, dtype=torch.float64)
    plane = torch.cartesian_prod(side, side)
    assert math.isclose(flow.log_density(plane).exp().sum() * step**2, 1, rel_tol=0.02)


def test_first_weights_are_of_the_generator_alone():
    seen = bent(300, 6)
    torch.manual_seed(1)
    one = fit_flow([seen], 1e-3, generator(7), steps=40).log_density(seen)
    torch.manual_seed(2)
    again = fit_flow([seen], 1e-3, generator(7), steps=40).log_density(seen)
    other = fit_flow([seen], 1e-3, generator(8), steps=40).log_density(seen)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
