"""Convolutions without the products that multiply padding, against PyTorch's own in float64."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from support.gradients import flat_with_gradient
from support.refusals import refused

from fedlogit import models
from fedlogit.engine.base import Workload
from fedlogit.engine.choose import check_engine
from fedlogit.engine.unpadded import _places, _SumOfProducts, _Unpadded
from fedlogit.spec import Optimizer

KERNEL = (3, 3)


def pairs(image, stride=(1, 1), padding=(1, 1), kernel=KERNEL):
    """Return the geometry of a convolution: sizes of image and kernel, stride, padding."""
    return image, kernel, stride, padding


def convolved(geometry, convolve, dtype=torch.float64):
    """Return a result and the gradients of images and weights, which start at 1, twice added up."""
    image, kernel, stride, padding = geometry
    random = torch.Generator().manual_seed(0)
    x = torch.randn(3, 4, *image, generator=random, dtype=dtype).requires_grad_()
    weight = torch.randn(5, 4, *kernel, generator=random, dtype=dtype).requires_grad_()
    weight.grad = torch.ones_like(weight)
    for _ in range(2):
        y = convolve(x, weight, stride, padding)
        y.backward(torch.randn(y.shape, generator=random, dtype=dtype))
    return y.detach(), x.grad, weight.grad


def own(x, weight, stride, padding):
    geometry = pairs(tuple(x.shape[2:]), stride, padding, tuple(weight.shape[2:]))
    return _SumOfProducts.apply(x, weight, _places(*geometry))


@pytest.mark.parametrize(
    "geometry",
    [
        pairs((1, 1)),
        pairs((2, 2)),
        pairs((2, 2), stride=(2, 2)),
        pairs((1, 4)),
        pairs((5, 3), stride=(2, 1)),
        pairs((3, 2), stride=(3, 2), padding=(2, 0), kernel=(5, 2)),
        pairs((4, 4), stride=(2, 2), padding=(0, 0), kernel=(1, 1)),
    ],
    ids=str,
)
def test_results_and_gradients_are_those_of_a_convolution(geometry):
    found, wanted = convolved(geometry, own), convolved(geometry, _torch)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert found[0].is_contiguous(memory_format=torch.channels_last)


def _torch(x, weight, stride, padding):
    return F.conv2d(x, weight, None, stride, padding)


@pytest.mark.parametrize(
    ("geometry", "places", "few"),
    [
        (pairs((1, 1)), 1, True),  # one product of nine
        (pairs((2, 2)), 9, True),  # along an axis 1 + 2 + 1 of 6, so 16 of 36
        (pairs((2, 2), stride=(2, 2)), 4, True),  # 4 of 9
        (pairs((4, 4), stride=(2, 2)), 9, False),  # along an axis 1 + 2 + 2 of 6, so 25 of 36
        (pairs((3, 3)), 9, False),  # 2 + 3 + 2 of 9, so 49 of 81
        (pairs((1, 1), padding=(0, 0), kernel=(1, 1)), 1, False),
    ],
    ids=str,
)
def test_which_places_of_a_kernel_meet_more_than_padding(geometry, places, few):
    found = _places(*geometry)
    assert (len(found.all), found.are_few) == (places, few)


def test_the_gradient_of_what_meets_padding_alone_is_zero():
    _, _, gradient = convolved(pairs((1, 1)), own)
    gradient = gradient - 1  # where it started
    assert gradient[..., 1, 1].all()
    assert gradient.count_nonzero() == 5 * 4


@pytest.mark.parametrize(("side", "replaced"), [(2, True), (3, False)])
def test_a_convolution_is_replaced_where_most_of_it_is_padding(monkeypatch, side, replaced):
    asked = []
    monkeypatch.setattr(_SumOfProducts, "apply", lambda x, *_: asked.append(x) or x)
    x = torch.randn(2, 4, side, side)
    with _Unpadded():
        torch.nn.Conv2d(4, 4, 3, padding=1, bias=False)(x)
        torch.nn.Conv2d(4, 4, 3, padding=1)(x)  # with a bias, or in groups, it stays
        torch.nn.Conv2d(4, 4, 3, padding=1, bias=False, groups=2)(x)
    assert len(asked) == replaced


@pytest.mark.parametrize(
    "convolve",
    [
        lambda x, weight: F.conv2d(x, weight, padding=1),
        lambda x, weight: F.conv2d(input=x, weight=weight, padding=1),
        lambda x, weight: F.conv2d(x, weight, None, 1, 1),
        lambda x, weight: F.conv2d(x, weight, None, (1,), (1,)),
        lambda x, weight: F.conv2d(x, weight, None, [1, 1], [1, 1], [1, 1], 1),
        lambda x, weight: F.conv2d(x, weight, None, (1, 1), "same", (1, 1), 1),
        lambda x, weight: F.conv2d(x[0], weight, None, (1, 1), (1, 1), (1, 1), 1),
    ],
)
def test_a_convolution_may_be_called_in_any_way(convolve):
    x, weight = torch.randn(2, 4, 2, 2), torch.randn(3, 4, 3, 3)
    with _Unpadded():
        found = convolve(x, weight)
    torch.testing.assert_close(found, convolve(x, weight))


def outcome(network, x):
    """Return what a network says, its gradient if it trains, and its statistics afterwards."""
    gradient = flat_with_gradient(network).grad
    logits = network(x)
    if network.training:
        F.cross_entropy(logits, torch.arange(len(x))).backward()
    return logits.detach(), gradient, *network.buffers()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("name", "side", "replaced"),
    [
        ("resnet18", 32, 7),  # three of stage 3 (2 x 2 positions), four of stage 4
        ("resnet18(batch_stats=True)", 64, 3),  # three of stage 4, which has 2 x 2 positions
        ("resnet18", 96, 0),
        ("resnet_light(2)", 8, 1),
    ],
)
def test_a_network_is_the_same_as_without_it(monkeypatch, name, side, replaced, training):
    network = models.build(name, (3, side, side), 10, torch.Generator().manual_seed(0))
    network.double().train(training)
    x = torch.randn(6, 3, side, side, generator=torch.Generator().manual_seed(1)).double()
    wanted, convolve, times = outcome(deepcopy(network), x), _SumOfProducts.apply, []
    monkeypatch.setattr(_SumOfProducts, "apply", lambda *a: times.append(1) or convolve(*a))
    with _Unpadded():
        found = outcome(network, x.contiguous(memory_format=torch.channels_last))
    assert len(times) == replaced
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("changes", "need"),
    [
        ({"device": "cuda"}, "device = cpu"),
        ({"model": "resnet20_heavy"}, "models = resnet18 or resnet_light"),
        ({"precision": "bf16"}, "precision = f32"),
    ],
)
def test_what_it_cannot_run_is_refused(changes, need):
    given = {"model": "resnet18", "device": "cpu"}
    adamw = Optimizer(name="adamw", lr=0.001)
    assert check_engine("unpadded", [Workload(**given, optimizer=adamw)]) is not None
    with refused(f"engine = 'unpadded' needs {need}"):
        check_engine("unpadded", [Workload(**given | changes, optimizer=adamw)])
