"""`MaxPool2x2` is `nn.MaxPool2d(2)`, to the bit and including ties."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from fedlogit.models.layers import MaxPool2x2, _MaxPool2x2

pool = MaxPool2x2()


def with_ties(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return small integers: most 2 x 2 windows have their maximum twice or more."""
    return torch.randint(-1, 2, shape, generator=torch.Generator().manual_seed(seed)).float()


def value_and_gradient(function, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x = x.clone(memory_format=torch.preserve_format).requires_grad_()
    y = function(x)
    weights = torch.arange(1.0, y.numel() + 1).view(y.shape)  # tells the windows apart
    (y * weights).sum().backward()
    return y.detach(), x.grad


@pytest.mark.parametrize("size", [(2, 2), (8, 6), (7, 6), (6, 7), (13, 13), (3, 2)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("make", [with_ties, torch.randn])
def test_values_and_gradients_are_pytorchs(size, layout, make):
    x = make(3, 4, *size).contiguous(memory_format=layout)
    for mine, theirs in zip(
        value_and_gradient(pool, x),
        value_and_gradient(lambda z: F.max_pool2d(z, 2), x),
        strict=True,
    ):
        assert torch.equal(mine, theirs)
        assert mine.is_contiguous(memory_format=layout)
    with torch.no_grad():
        assert torch.equal(pool(x), F.max_pool2d(x, 2))


def test_strided_input_and_gradient():
    """The function itself takes any layout and any incoming gradient, such as an expanded one."""
    x = with_ties(2, 6, 9, 3).permute(0, 3, 1, 2).requires_grad_()
    y = _MaxPool2x2.apply(x)[0]
    assert torch.equal(y, F.max_pool2d(x, 2))
    (mine,) = torch.autograd.grad(y.sum(), x)
    (theirs,) = torch.autograd.grad(F.max_pool2d(x, 2).sum(), x)
    assert torch.equal(mine, theirs)


def test_the_first_of_equal_values_gets_the_gradient():
    x = torch.tensor([[[[1.0, 5.0, 2.0, 2.0], [5.0, 5.0, 2.0, 2.0]]]])
    value, gradient = value_and_gradient(pool, x)
    assert value.tolist() == [[[[5.0, 2.0]]]]
    assert gradient.tolist() == [[[[0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]]


@pytest.mark.parametrize("size", [(4, 6), (5, 3)])
def test_gradcheck(size):
    # distinct values, 1 apart: a step of 1e-6 changes no maximum
    order = torch.randperm(2 * size[0] * size[1], generator=torch.Generator().manual_seed(0))
    x = order.double().view(1, 2, *size).requires_grad_()
    assert torch.autograd.gradcheck(pool, (x,))


def test_nan_is_not_hidden():
    x = torch.zeros(1, 1, 2, 4)
    x[0, 0, 1, 1] = float("nan")
    for values in (pool(x), pool(x.requires_grad_())):
        assert values.isnan().tolist() == [[[[True, False]]]]


@pytest.mark.parametrize("size", [(4, 6), (5, 7)])
def test_under_torch_func(size):
    x = with_ties(3, 2, 4, *size)

    def loss(function):
        return lambda z: (function(z) ** 2).sum()

    def torchs(z):
        return F.max_pool2d(z, 2)

    per_sample = torch.func.vmap(torch.func.grad(loss(pool)))(x)
    assert torch.equal(per_sample, torch.func.vmap(torch.func.grad(loss(torchs)))(x))
    summed = torch.func.grad(lambda z: torch.func.vmap(loss(pool))(z).sum())(x)
    assert torch.equal(summed, per_sample)


def test_second_derivatives_raise_rather_than_vanish():
    x = torch.randn(1, 1, 4, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad((pool(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
