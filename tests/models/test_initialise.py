"""Initial weights are those of PyTorch and torchvision, from a generator of one's own."""

from __future__ import annotations

import math

import pytest
import torch
import torchvision
from support.networks import network
from torch import nn

from fedlogit.errors import FedlogitError
from fedlogit.models.init import Uninitialised, check_deterministic, initialise


def filled(make, seed: int = 5) -> nn.Module:
    """Return the layer built without values and then initialised."""
    with Uninitialised():
        layer = make()
    for tensor in layer.state_dict().values():
        tensor.fill_(77)  # what was not initialised shows
    initialise(layer, torch.Generator().manual_seed(seed))
    return layer


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(100, 50),
        lambda: nn.Linear(7, 3, bias=False),
        lambda: nn.Conv2d(4, 8, 3),
        lambda: nn.Conv2d(4, 8, (3, 5), groups=2, bias=False),
        lambda: nn.BatchNorm1d(5),
        lambda: nn.BatchNorm2d(6),
        lambda: nn.BatchNorm2d(6, track_running_stats=False),
        lambda: nn.LayerNorm(9),
        lambda: nn.GroupNorm(2, 8),
        lambda: nn.Embedding(20, 6),
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Linear(4, 2)),
    ],
)
def test_same_bits_as_pytorch_draws_from_the_same_seed(make):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        expected = make().state_dict()
    actual = filled(make).state_dict()
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[k], expected[k]) for k in expected)


# Uniform in ±1/sqrt(fan_in): fan_in = 400 for the linear layer, 16·5·5 = 400 for the convolution;
# the standard deviation of a uniform in ±b is b/√3.
@pytest.mark.parametrize("make", [lambda: nn.Linear(400, 300), lambda: nn.Conv2d(16, 300, 5)])
def test_bounds(make):
    layer = filled(make)
    for values in (layer.weight, layer.bias):
        assert 0.95 / 20 < values.abs().max() <= 1 / 20
    torch.testing.assert_close(layer.weight.std().item(), 1 / 20 / math.sqrt(3), rtol=0.01, atol=0)
    assert abs(layer.weight.mean()) < 1e-3


@pytest.mark.parametrize(
    "call", ["resnet18", "resnet18(stem='cifar')", "resnet20_heavy", "resnet_light(2)"]
)
def test_convolutions_of_residual_networks_are_normal_as_in_torchvision(call):
    """Of variance 2 / (k² channels out): beyond the bounds of a uniform of the same variance."""
    model = network(call, (3, 32, 32))
    convolutions = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    for layer in convolutions:
        std = math.sqrt(2 / (layer.kernel_size[0] ** 2 * layer.out_channels))
        drawn = layer.weight.detach() / std
        assert drawn.std() == pytest.approx(1, abs=4 / math.sqrt(2 * drawn.numel()))
        assert drawn.abs().max() > 1.9, "a uniform has nothing beyond the square root of 3"
    bound = 1 / math.sqrt(model.fc.in_features)
    assert 0.9 * bound < model.fc.weight.abs().max() <= bound


def test_resnet_18_spreads_its_first_weights_as_torchvision_does():
    """Layer by layer: the same shapes, and the same spread."""
    ours = network("resnet18", (3, 32, 32))
    theirs = torchvision.models.resnet18(num_classes=10)
    for a, b in zip(
        (m for m in ours.modules() if isinstance(m, nn.Conv2d)),
        (m for m in theirs.modules() if isinstance(m, nn.Conv2d)),
        strict=True,
    ):
        assert a.weight.shape == b.weight.shape
        assert a.weight.std().item() == pytest.approx(b.weight.std().item(), rel=0.05)


class _Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))


class _Gated(nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
        self.gate = nn.Parameter(torch.ones(2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Sequential(nn.Linear(2, 2), _Scale()), r"layer '1' \(_Scale\) .* first gain;"),
        (lambda: nn.Sequential(_Gated()), r"layer '0' \(_Gated\) .* first gate;"),
    ],
)
def test_unknown_parameters_are_refused_not_left_uninitialised(make, message):
    with pytest.raises(FedlogitError, match=message):
        filled(make)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Conv1d(3, 4, 3),
        lambda: nn.ConvTranspose2d(3, 4, 3),
        lambda: nn.PReLU(),
        lambda: nn.InstanceNorm2d(4, affine=True),
        lambda: nn.GRU(3, 5),
        lambda: nn.Embedding(3, 2, padding_idx=0),
    ],
)
def test_other_layers_draw_as_in_pytorch_from_the_given_generator_alone(make):
    before = torch.default_generator.get_state()
    found = filled(make).state_dict()
    assert torch.equal(torch.default_generator.get_state(), before)
    seed = int(torch.randint(2**62, (), generator=torch.Generator().manual_seed(5)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        theirs = make()
        theirs.reset_parameters()  # drawn anew: the constructor has drawn already
        torch.manual_seed(seed)
        theirs.reset_parameters()
    for name, value in theirs.state_dict().items():
        assert torch.equal(found[name], value), name
    if found[name].unique().numel() > 2:  # not only zeros and ones
        assert not torch.equal(found[name], filled(make, seed=6).state_dict()[name])


@pytest.mark.parametrize(
    "layer",
    [
        nn.Dropout(0.2),
        nn.AlphaDropout(0.2),
        nn.MultiheadAttention(4, 2, dropout=0.1),
        nn.GRU(3, 5, num_layers=2, dropout=0.5),
        nn.RReLU(),
    ],
)
def test_layers_that_draw_in_training_are_refused(layer):
    check_deterministic(nn.Sequential(nn.Dropout(0.0), nn.MultiheadAttention(4, 2)))
    network = nn.Sequential(nn.Flatten(), layer)
    message = f"layer '1' .{type(layer).__name__}. draws random numbers that no seed"
    with pytest.raises(FedlogitError, match=message):
        check_deterministic(network)
