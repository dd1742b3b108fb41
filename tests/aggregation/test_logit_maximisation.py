"""LMProbe finds the maximum where it is known, and batches do not matter."""

import pytest
import torch
from torch import nn

from fedlogit import models
from fedlogit.aggregation.logit_maximisation import (
    Ascent,
    maximise_logits,
    maximise_stacked,
    models_at_once,
    probed_together,
)

ASCENT = Ascent(steps=400, rate=0.05, penalty=0.5)


def linear(weight, bias) -> nn.Module:
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))
    return nn.Sequential(nn.Flatten(), layer)


def test_a_linear_model_s_maximum_is_known():
    # w_c·x + b_c - λ|x|² is largest at x = w_c / 2λ, where the logit is |w_c|²/2λ + b_c.
    # λ = .5: x = w_c and s_c = |w_c|² + b_c: 1 + 4 + .25 and 9 + 0 - 1.
    model = linear([[1.0, 2.0], [3.0, 0.0]], [0.25, -1.0])
    logits, images = maximise_logits(model, torch.zeros(2, 1, 1, 2), torch.arange(2), ASCENT)
    assert images.flatten(1).tolist() == [
        pytest.approx([1, 2], abs=1e-3),
        pytest.approx([3, 0], abs=1e-3),
    ]
    assert logits.tolist() == pytest.approx([5.25, 8.0], abs=1e-2)


def adam(x: float, gradient, steps: int, rate: float) -> float:
    """Kingma and Ba's Algorithm 1 in one dimension, with their β₁, β₂ and ε."""
    m = v = 0.0
    for t in range(1, steps + 1):
        g = gradient(x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x -= rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)
    return x


def test_images_move_by_adam_with_its_usual_moments():
    model = linear([[2.0, 0.0], [0.0, 0.0]], [0.0, 0.0])
    ascent = Ascent(steps=7, rate=0.5, penalty=0.5)
    _, images = maximise_logits(model, torch.zeros(1, 1, 1, 2), torch.tensor([0]), ascent)
    # Of λx² - 2x with λ = .5; seven large steps, so that the gradient changes its size and sign.
    assert float(images[0, 0, 0, 0]) == pytest.approx(adam(0.0, lambda x: x - 2, 7, 0.5), abs=1e-5)


def test_only_the_wanted_classes_are_probed():
    model = linear([[1.0, 2.0], [3.0, 0.0]], [0.25, -1.0])
    logits, images = maximise_logits(model, torch.zeros(1, 1, 1, 2), torch.tensor([1]), ASCENT)
    assert images.shape == (1, 1, 1, 2)
    assert logits.tolist() == pytest.approx([8.0], abs=1e-2)


KINDS = pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mlp(hidden=[16])", (1, 8, 8)),
        ("tf_cnn", (3, 32, 32)),
        ("vit_tiny(layers=1)", (1, 8, 8)),
        ("resnet_light(1)", (1, 8, 8)),  # with batch norm
    ],
)


def build(name, shape, count) -> list[nn.Module]:
    networks = [
        models.build(name, shape, 5, torch.Generator().manual_seed(i)) for i in range(count)
    ]
    for i, network in enumerate(networks):  # statistics as after training, of each its own
        for key, buffer in network.named_buffers():
            if key.endswith("running_mean"):
                buffer.fill_(0.1 * i)
    return networks


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("at_once", [1, 2, None])
def test_stacked_models_reach_the_same_logits(name, shape, at_once):
    networks = build(name, shape, 3)
    start = torch.randn(3, 5, *shape, generator=torch.Generator().manual_seed(9))
    before = [{k: v.clone() for k, v in n.state_dict().items()} for n in networks]
    ascent = Ascent(steps=20, rate=0.01, penalty=1e-3)
    one_by_one = [
        maximise_logits(n, x, torch.arange(5), ascent)[0]
        for n, x in zip(networks, start, strict=True)
    ]
    stacked, images = maximise_stacked(networks, start, torch.arange(5), ascent, at_once)
    assert images.shape == start.shape
    assert torch.allclose(stacked, torch.stack(one_by_one), rtol=1e-3, atol=1e-3)
    for network, state in zip(networks, before, strict=True):
        assert all(torch.equal(v, state[k]) for k, v in network.state_dict().items())
        assert all(p.grad is None for p in network.parameters())


def test_models_at_once_by_hand():
    # Inputs of 7 float32 with 5 images: Linear(4, 3) keeps its 5 x 4 input, 80 bytes, and the ReLU
    # its 5 x 3 output, 60, which is also what Linear(3, 2) keeps. Weights: 12 + 3 + 6 + 2 numbers,
    # 92 bytes. 232 in all.
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    images = torch.zeros(5, 1, 2, 2)
    assert models_at_once(model, images, 231) == 1, "one is always probed"
    assert models_at_once(model, images, 463) == 1
    assert models_at_once(model, images, 464) == 2
    assert models_at_once(model, images) == 18_512_790  # 4 GiB / 232


@KINDS
def test_larger_models_and_more_images_leave_room_for_fewer(name, shape):
    (network,) = build(name, shape, 1)
    weights = sum(t.nbytes for t in [*network.parameters(), *network.buffers()])
    room = 1000 * weights
    few, many = (models_at_once(network, torch.zeros(k, *shape), room) for k in (2, 20))
    assert many < few <= 1000
    assert all(p.grad is None for p in network.parameters())


@pytest.mark.parametrize(
    ("name", "on_a_cpu"),
    [("mlp_net", True), ("mlp(hidden=[])", True), ("tf_cnn", False), ("vit_tiny", False)],
)
def test_perceptrons_are_probed_together_on_a_cpu_too(name, on_a_cpu):
    network = models.build(name, (3, 32, 32), 5, torch.Generator().manual_seed(0))
    assert probed_together(network, "cpu") is on_a_cpu
    assert probed_together(network, "cuda")


@KINDS
@pytest.mark.parametrize("stacked", [False, True])
def test_images_come_back_in_the_order_of_memory_that_files_have(name, shape, stacked):
    (network,), start = build(name, shape, 1), torch.zeros(2, *shape)
    given = (torch.arange(2), Ascent(1, 0.1, 1e-3))
    found = maximise_stacked([network], start[None], *given) if stacked else None
    _, images = found or maximise_logits(network, start, *given)
    assert images.is_contiguous()
