"""Every architecture: its published parameter count, and what all must have in common."""

import copy
import sys
from types import ModuleType

import pytest
import torch
from support.networks import images, network
from torch import nn

from fedlogit.component import catalogue
from fedlogit.errors import FedlogitError, missing_package
from fedlogit.models import ModelConfig, get

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
# (call, image shape, classes, parameters)
COUNTS = [
    ("lenet", MNIST, 10, 61_706),
    ("lenet_bn", MNIST, 10, 61_932),  # as many, less 226 biases before norms, and 2 · 226 of these
    ("lenet_tanh", MNIST, 10, 61_706),
    ("tf_cnn", CIFAR, 10, 122_570),
    ("mlp_net", MNIST, 10, 140_106),  # 1024·128+128 + 128·64+64 + 64·10+10
    ("mlp_net(pad=0)", MNIST, 10, 109_386),
    ("mlp_net", MNIST, 47, 142_511),
    ("mlp4w", MNIST, 10, 242_762),  # 784·256+256 + 256·128+128 + 128·64+64 + 64·10+10
    ("mlp([32])", (1, 8, 8), 10, 2_410),  # 64·32+32 + 32·10+10
    ("mlp([])", (1, 8, 8), 10, 650),
    ("resnet18(stem='cifar')", CIFAR, 10, 11_173_962),
    ("resnet18", CIFAR, 10, 11_181_642),  # torchvision's; gives TallyTrain's payloads
    ("resnet18", CIFAR, 100, 11_227_812),
    ("resnet20_heavy", CIFAR, 10, 17_075_274),  # FedOL's 65.14 "MB" are 4 bytes times this in MiB
    ("resnet20_heavy", CIFAR, 100, 17_121_444),
    ("resnet11_heavy", CIFAR, 10, 9_623_882),
    ("resnet56_heavy", CIFAR, 10, 43_634_250),
    ("resnet_light(1)", CIFAR, 100, 150_772),
    ("resnet_light(2)", CIFAR, 100, 243_508),
    ("resnet_light(6)", CIFAR, 100, 614_452),
    # torchvision's 86,567,656 with 1,000 classes less 992 rows of 768 weights and a bias
    ("vit_b16(weights='none')", (3, 224, 224), 8, 85_804_808),
]
# One of each architecture, as small as it comes, for what needs a backward pass.
EACH = [
    ("lenet", MNIST),
    ("lenet_bn", MNIST),
    ("lenet_tanh", MNIST),
    ("tf_cnn", CIFAR),
    ("mlp_net", MNIST),
    ("mlp4w", MNIST),
    ("mlp", (1, 8, 8)),
    ("resnet18(stem='cifar')", (3, 8, 8)),
    ("resnet18", CIFAR),
    ("resnet20_heavy", (3, 8, 8)),
    ("resnet11_heavy", (3, 8, 8)),
    ("resnet56_heavy", (3, 8, 8)),
    ("resnet_light(1)", (3, 8, 8)),
    ("resnet_light(n=1, batch_stats=True)", (3, 8, 8)),
    ("vit_tiny", (1, 8, 8)),
]


@pytest.mark.parametrize(("call", "shape", "classes", "parameters"), COUNTS)
def test_parameter_counts(call, shape, classes, parameters):
    with torch.device("meta"):
        model = get(call).network(shape, classes)
    assert sum(p.numel() for p in model.parameters()) == parameters


def test_every_architecture_is_tested():
    tested = {get(call).name for call, _ in EACH}
    # 86 M parameters take long; vit_tiny is the same network, smaller, and test_vit.py loads it.
    # tiny_gpt takes tokens, not images: test_tiny_gpt.py has its tests.
    assert tested | {"vit_b16", "tiny_gpt"} == set(catalogue("fedlogit.models", ModelConfig))


@pytest.mark.parametrize(("call", "shape"), EACH)
def test_what_all_models_have_in_common(call, shape):
    before = torch.random.get_rng_state()
    model, twin, other = network(call, shape), network(call, shape), network(call, shape, seed=1)
    assert torch.equal(before, torch.random.get_rng_state())

    vector = nn.utils.parameters_to_vector(model.parameters())
    assert torch.equal(vector, nn.utils.parameters_to_vector(twin.parameters()))
    assert not torch.equal(vector, nn.utils.parameters_to_vector(other.parameters()))

    head = dict(model.named_modules())[model.head]
    assert isinstance(head, nn.Linear)
    assert head.out_features == 10
    assert model.head == [name for name, _ in model.named_modules()][-1]

    x = images(shape)
    logits = model(x)
    assert logits.shape == (4, 10)
    logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())

    model.eval()
    assert torch.equal(model(x), model(x))
    restored = network(call, shape, seed=2)
    restored.load_state_dict(copy.deepcopy(model.state_dict()))
    assert torch.equal(restored.eval()(x), model(x))


@pytest.mark.parametrize(
    ("call", "shape", "message"),
    [
        ("resnet19", CIFAR, "unknown model 'resnet19'; did you mean 'resnet18'?"),
        ("lenet", (1, 8, 8), r"model lenet takes images of at least 12 x 12, not .*\(1, 8, 8\)"),
        ("tf_cnn", (3, 16, 16), "model tf_cnn takes images of at least 18 x 18"),
        ("resnet18(stem='big')", CIFAR, "stem = 'big'"),
        ("mlp(hidden=[0])", MNIST, "hidden.0 = 0"),
        ("resnet_light", CIFAR, "key 'n' is missing"),
        ("lenet(3)", MNIST, "too many arguments; it takes none"),
    ],
)
def test_mistakes_get_one_line(call, shape, message):
    with pytest.raises(FedlogitError, match=message):
        network(call, shape)


def test_a_package_that_a_model_needs_is_named(monkeypatch):
    for name in ("torchvision", "torchvision.models"):
        monkeypatch.setitem(sys.modules, name, None)
    said = "model vit_tiny needs the package torchvision, which is not installed; pip install torch"
    with pytest.raises(FedlogitError, match=said):
        network("vit_tiny", (1, 8, 8))


def test_a_package_that_cannot_be_imported_says_why(monkeypatch):
    """Only a package that is not there is to be installed."""
    for name in ("torchvision", "torchvision.models"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.raises(ImportError, match="VisionTransformer"):
        network("vit_tiny", (1, 8, 8))
    for name in ("nowhere", "fedlogit.nowhere"):
        lacking = ModuleNotFoundError(f"No module named {name!r}", name=name)
        with pytest.raises(ModuleNotFoundError, match=name):
            missing_package(lacking, "a model", "pip install torchvision", "torchvision")


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ([nn.Flatten(), nn.Linear(64, 11)], "into (2, 11); give logits of shape (2, 10)"),
        ([nn.Linear(8, 10)], "into (2, 1, 8, 10); give logits of shape (2, 10)"),
        ([nn.Flatten(), nn.Linear(63, 10)], "takes no batch of shape (2, 1, 8, 8): "),
        (None, "model own: network returned NoneType; give a nn.Module"),
    ],
)
def test_an_own_network_that_gives_no_logits_of_the_classes_is_refused(monkeypatch, layers, said):
    class Own(ModelConfig):
        """A model of one's own."""

        def network(self, shape, classes):
            return layers and nn.Sequential(*layers)

    module = ModuleType("own_models")
    module.Own = Own
    monkeypatch.setitem(sys.modules, "own_models", module)
    with pytest.raises(FedlogitError) as error:
        network("own_models:Own", (1, 8, 8))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
