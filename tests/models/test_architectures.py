"""What parameter counts do not show: strides, padding, order of layers, and refused input."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from support.networks import images, network
from torch import nn

from fedlogit.component import ComponentRef
from fedlogit.errors import FedlogitError
from fedlogit.models import get

GREY, RGB = (1, 28, 28), (3, 32, 32)


def test_logits_of_a_sample_depend_on_its_batch_only_with_batch_statistics():
    x = images(RGB, 8)
    tracked = network("resnet_light(1)", RGB).eval()
    batchwise = network("resnet_light(1, batch_stats=True)", RGB)
    with torch.no_grad():
        torch.testing.assert_close(tracked(x)[:2], tracked(x[:2]))
        trained = batchwise(x)
        assert torch.equal(batchwise.eval()(x), trained)  # the same at training and at test time
        assert not torch.allclose(trained[:2], batchwise(x[:2]), atol=1e-3)


def test_only_the_head_follows_the_hidden_layers():
    """With zero weights in the head, only its bias is left of the output."""
    for call in ("lenet", "lenet_bn", "lenet_tanh", "mlp_net", "resnet18", "resnet_light(1)"):
        model = network(call, GREY)
        head = model.get_submodule(model.head)
        with torch.no_grad():
            head.weight.zero_()
            torch.testing.assert_close(model(images(GREY)), head.bias.expand(4, 10))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "least", "most"),
    [("lenet", 30, 120), ("lenet_bn", 2.0, 2.5), ("resnet18(batch_stats=True)", 1.9, 2.8)],
)
def test_how_far_an_average_of_five_first_weights_shrinks_the_logits(call, least, most):
    """Normalised, only the last layer's √5 = 2.24 is left; LeNet's five layers multiply theirs."""
    models = [network(call, RGB, seed=seed) for seed in range(5)]
    average = network(call, RGB)
    x = images(RGB, 100)
    with torch.no_grad():
        for mean, *each in zip(*(m.parameters() for m in (average, *models)), strict=True):
            mean.copy_(torch.stack(each).mean(0))
        spread = [float((m(x) - m(x).mean(0)).std()) for m in (*models, average)]
    assert least < sum(spread[:5]) / 5 / spread[5] < most


# Side of the square maps after the stem and after the last block, for 32 x 32 images: strides do
# not show in parameter counts. imagenet: /2 (conv) /2 (pool), then /8; light: /4.
@pytest.mark.parametrize(
    ("call", "stem", "last"),
    [
        ("resnet18(stem='cifar')", 32, 4),
        ("resnet18(stem='imagenet')", 8, 1),
        ("resnet11_heavy", 32, 4),
        ("resnet_light(2)", 32, 8),
    ],
)
def test_residual_networks_shrink_as_they_should(call, stem, last):
    model = network(call, RGB)
    x = model.stem(images(RGB, 2))
    assert x.shape[2:] == (stem, stem)
    assert model.blocks(x).shape[2:] == (last, last)


def test_lenet_tanh_is_lenet_with_other_activations_and_pools():
    """Given LeNet's weights, and with its activations and pools exchanged, it computes the same."""
    lenet, other = network("lenet", GREY), network("lenet_tanh", GREY)
    weights = dict(zip(other.state_dict(), lenet.state_dict().values(), strict=True))
    other.load_state_dict(weights)
    x = images(GREY)
    for layer in (lenet.conv1, lenet.conv2):
        x = F.interpolate(layer(x).tanh(), scale_factor=0.5, mode="area")
    x = lenet.fc2(lenet.fc1(x.flatten(1)).tanh()).tanh()
    torch.testing.assert_close(other(images(GREY)), lenet.fc3(x))


@pytest.mark.parametrize(("call", "shape"), [("lenet", GREY), ("tf_cnn", RGB)])
def test_relu_after_pool_is_relu_before_pool(call, shape):
    model = network(call, shape)
    layers = dict(model.named_children())
    steps: list[nn.Module] = []
    for name, layer in layers.items():
        if name == "fc1":
            steps.append(nn.Flatten())
        if name != "pool":
            steps += [layer, nn.ReLU()]
        if name in ("conv1", "conv2"):
            steps.append(nn.MaxPool2d(2))
    textbook = nn.Sequential(*steps[:-1])
    x, target = images(shape, 8), torch.arange(8)
    grads = []
    for either in (model, textbook):
        either.zero_grad()
        F.cross_entropy(either(x), target).backward()
        grads.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
    torch.testing.assert_close(model(x), textbook(x))
    torch.testing.assert_close(*grads)


def test_mlp_net_pads_with_zeros_all_round():
    model = network("mlp_net(pad=2)", (1, 2, 2), 3)
    x = images((1, 2, 2), 5)
    by_hand = torch.zeros(5, 6, 6)
    by_hand[:, 2:4, 2:4] = x[:, 0]
    y = model.fc1(by_hand.reshape(5, 36)).relu()
    torch.testing.assert_close(model(x), model.fc3(model.fc2(y).relu()))


def test_a_resolved_call_names_every_parameter():
    def resolved(text):
        call = ComponentRef.read(text, "model")
        return call.resolved(get(call))

    assert resolved("mlp_net") == ComponentRef(name="mlp_net", params={"pad": 2})
    assert resolved(" mlp([8]) ").params == {"hidden": [8]}
    assert resolved("resnet18(stem='cifar')").params == {"stem": "cifar", "batch_stats": False}
    assert str(resolved("fedlogit.models.lenet:Lenet")) == "fedlogit.models.lenet:Lenet"


@pytest.mark.parametrize(
    ("call", "shape", "message"),
    [
        (
            "lenet",
            (1, 28, 11),
            "model lenet takes images of at least 12 x 12, not of shape (1, 28, 11)",
        ),
        (
            "tf_cnn",
            (3, 17, 32),
            "model tf_cnn takes images of at least 18 x 18, not of shape (3, 17, 32)",
        ),
        (
            "resnet18",
            (28, 28),
            "model resnet18 takes images of at least 1 x 1, not of shape (28, 28)",
        ),
        ("mlp", (0, 8, 8), "not of shape (0, 8, 8) (channels, height, width)"),
        ("mlp(hiden=[3])", GREY, "model mlp: unknown key 'hiden'; did you mean 'hidden'?"),
        ("mlp_net(pad=-1)", GREY, "model mlp_net: pad = -1: "),
        (
            "mlp([8, 10000000000])",
            GREY,
            "model mlp: hidden = 10000000000: give at most 2,147,483,647",
        ),
    ],
)
def test_input_that_does_not_fit_gets_one_line(call, shape, message):
    with pytest.raises(FedlogitError) as caught:
        network(call, shape)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("call", "side"), [("lenet", 12), ("tf_cnn", 18), ("resnet18", 1)])
def test_the_smallest_image_works(call, side):
    model = network(call, (1, side, side), 2).eval()
    assert model(images((1, side, side))).shape == (4, 2)
