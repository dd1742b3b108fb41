"""The native engine against the autograd loop, which is the reference."""

import copy
import ctypes
import shutil
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from support.refusals import refused

from fedlogit.engine import Workload, check_engine
from fedlogit.engine.client import flatten
from fedlogit.engine.native import NativeEngine, compiler
from fedlogit.engine.native.lenet import train_lenet
from fedlogit.engine.native.mlp import train_mlp
from fedlogit.errors import FedlogitError
from fedlogit.models import build
from fedlogit.spec import Optimizer

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine"
)
SHAPE = (1, 28, 28)
SCALE, SHIFT = 1 / (255 * 0.3081), -0.1307 / 0.3081


def reference(model, x, distributions, rows, targets, ends, dtype):
    """Return flat parameters and summed loss after training by autograd and PyTorch's Adam."""
    model = copy.deepcopy(model).to(dtype)
    vector = flatten(model)
    optimizer = torch.optim.Adam([vector], 1e-3)
    total, begin = 0.0, 0
    for end in ends.tolist():
        part = slice(begin, end)
        vector.grad.zero_()
        images = x[rows[part]].to(dtype) * SCALE + SHIFT
        loss = F.cross_entropy(model(images), distributions[targets[part]].to(dtype))
        loss.backward()
        optimizer.step()
        total += loss.item() * (end - begin)
        begin = end
    return vector.detach(), total


@needs_compiler
@pytest.mark.parametrize("classes", [10, 47])
@pytest.mark.parametrize("sizes", [[128, 128, 44], [16, 1, 17, 3]])
def test_as_close_to_float64_as_autograd_is(classes, sizes):
    generator = torch.Generator().manual_seed(1)
    model = build("lenet", SHAPE, classes, torch.Generator().manual_seed(0))
    x = torch.randint(0, 256, (300, *SHAPE), dtype=torch.uint8, generator=generator)
    distributions = (3 * torch.rand(50, classes, generator=generator)).softmax(1)
    rows = torch.randint(0, 300, (sum(sizes),), generator=generator)
    targets = torch.randint(0, 50, (sum(sizes),), generator=generator)
    ends = torch.tensor(sizes).cumsum(0)
    case = (model, x, distributions, rows, targets, ends)
    exact, exact_loss = reference(*case, torch.float64)
    single, _ = reference(*case, torch.float32)

    vector = flatten(copy.deepcopy(model)).data
    moments = (torch.zeros_like(vector), torch.zeros_like(vector))
    total = train_lenet(
        vector, moments, x, rows, targets, distributions, ends,
        pixels=(SCALE, SHIFT), adam=(1e-3, 0.9, 0.999, 1e-8), steps=0, cancel=ctypes.c_int(0),
    )  # fmt: skip
    assert total == pytest.approx(exact_loss, rel=1e-6)
    # Adam divides by the root of the second moment, so a gradient near zero magnifies rounding; the
    # reference in float32 shows how much is unavoidable.
    error, unavoidable = (vector - exact).abs().max(), (single - exact).abs().max()
    assert error < 5 * unavoidable + 1e-6
    assert error < 1e-3 * len(sizes), "far less than the parameters moved"
    assert (vector - exact).norm() < 1e-3 * (exact - flatten(copy.deepcopy(model)).data).norm()


@needs_compiler
@pytest.mark.parametrize(
    ("call", "shape", "sizes"),
    [
        ("mlp_net", SHAPE, [128, 128, 44]),
        ("mlp4w", SHAPE, [64, 1, 17]),
        ("mlp_net(pad=1)", (3, 9, 7), [33, 16]),
        ("mlp([])", (1, 8, 8), [20, 20]),
        ("mlp([5, 70])", (1, 8, 8), [128, 3]),
    ],
)
def test_perceptrons_are_as_close_to_float64_as_autograd_is(call, shape, sizes):
    generator = torch.Generator().manual_seed(1)
    model = build(call, shape, 11, torch.Generator().manual_seed(0))
    x = torch.randint(0, 256, (200, *shape), dtype=torch.uint8, generator=generator)
    distributions = (3 * torch.rand(50, 11, generator=generator)).softmax(1)
    rows = torch.randint(0, 200, (sum(sizes),), generator=generator)
    targets = torch.randint(0, 50, (sum(sizes),), generator=generator)
    ends = torch.tensor(sizes).cumsum(0)
    scale, shift = [0.01, 0.02, 0.005][: shape[0]], [-0.5, 0.1, -1.0][: shape[0]]

    def trained(dtype):
        network = copy.deepcopy(model).to(dtype)
        vector = flatten(network)
        sgd = torch.optim.SGD([vector], 0.1)
        by_channel = [torch.tensor(v, dtype=dtype)[:, None, None] for v in (scale, shift)]
        total, begin = 0.0, 0
        for end in ends.tolist():
            part = slice(begin, end)
            vector.grad.zero_()
            images = x[rows[part]].to(dtype) * by_channel[0] + by_channel[1]
            loss = F.cross_entropy(network(images), distributions[targets[part]].to(dtype))
            loss.backward()
            sgd.step()
            total += loss.item() * (end - begin)
            begin = end
        return vector.detach(), total

    exact, exact_loss = trained(torch.float64)
    single, _ = trained(torch.float32)
    network = copy.deepcopy(model)
    vector = flatten(network).data
    start = vector.clone()
    total = train_mlp(
        vector, x, rows, targets, distributions, ends,
        sizes=[layer.out_features for layer in network.children()], pad=network.pad,
        scale=scale, shift=shift, rate=0.1, cancel=ctypes.c_int(0),
    )  # fmt: skip
    assert total == pytest.approx(exact_loss, rel=1e-5)
    error, unavoidable = (vector - exact).abs().max(), (single - exact).abs().max()
    assert error < 5 * unavoidable + 1e-6
    assert (vector - exact).norm() < 1e-4 * (exact - start).norm()


@needs_compiler
def test_ties_in_a_pool_go_to_the_first_as_in_pytorch():
    """Flat images make every window a tie."""
    model = build("lenet", SHAPE, 10, torch.Generator().manual_seed(3))
    x = torch.full((16, *SHAPE), 200, dtype=torch.uint8)
    rows, targets, ends = torch.arange(16), torch.zeros(16, dtype=torch.int64), torch.tensor([16])
    distributions = torch.eye(10)
    expected, _ = reference(model, x, distributions, rows, targets, ends, torch.float64)
    vector = flatten(model).data
    moments = (torch.zeros_like(vector), torch.zeros_like(vector))
    train_lenet(
        vector, moments, x, rows, targets, distributions, ends,
        pixels=(SCALE, SHIFT), adam=(1e-3, 0.9, 0.999, 1e-8), steps=0, cancel=ctypes.c_int(0),
    )  # fmt: skip
    # Adam's first moment after one step is a tenth of the gradient.
    exact = copy.deepcopy(build("lenet", SHAPE, 10, torch.Generator().manual_seed(3))).double()
    F.cross_entropy(exact(x.double() * SCALE + SHIFT), distributions[targets].double()).backward()
    gradient = torch.cat([p.grad.flatten() for p in exact.parameters()])
    assert torch.allclose(moments[0].double() * 10, gradient, atol=1e-6)
    assert expected.shape == vector.shape


@needs_compiler
def test_cancelling_ends_the_call_at_once():
    model = build("lenet", SHAPE, 10, torch.Generator().manual_seed(0))
    vector = flatten(model).data
    before = vector.clone()
    x = torch.zeros(4, *SHAPE, dtype=torch.uint8)
    loss = train_lenet(
        vector, (torch.zeros_like(vector), torch.zeros_like(vector)), x, torch.arange(4),
        torch.zeros(4, dtype=torch.int64), torch.eye(10), torch.tensor([4]),
        pixels=(1.0, 0.0), adam=(1e-3, 0.9, 0.999, 1e-8), steps=0, cancel=ctypes.c_int(1),
    )  # fmt: skip
    assert loss == 0
    assert torch.equal(vector, before)


ADAM, SGD = Optimizer(name="adam", lr=0.001), Optimizer(name="sgd", lr=0.1)
LENET = Workload("lenet", SHAPE, "cpu", ADAM, 128)
PERCEPTRON = Workload("mlp", (1, 8, 8), "cpu", SGD, 128)


def optimizer(workload: Workload, **changes) -> Workload:
    """Return the workload with other settings of its optimizer."""
    return replace(workload, optimizer=workload.optimizer.model_copy(update=changes))


@pytest.mark.parametrize("workload", [LENET, PERCEPTRON, replace(PERCEPTRON, model="mlp4w")])
def test_what_it_can_do(workload):
    assert NativeEngine.unsupported(workload) is None


@pytest.mark.parametrize(
    ("workload", "need"),
    [
        (replace(LENET, model="tf_cnn"), "models = lenet, or perceptrons such as mlp_net"),
        (replace(LENET, model="lenet_bn"), "models = lenet, or perceptrons such as mlp_net"),
        (replace(LENET, shape=(3, 32, 32)), "images of 28 x 28 x 1 for lenet"),
        (replace(LENET, optimizer=SGD), "optimizer.name = adam"),
        (replace(PERCEPTRON, optimizer=ADAM), "optimizer.name = sgd"),
        (optimizer(PERCEPTRON, momentum=0.9), "optimizer.momentum = 0"),
        (optimizer(LENET, weight_decay=0.1), "optimizer.weight_decay = 0"),
        (optimizer(LENET, clip=1.0), "optimizer.clip = null"),
        (optimizer(LENET, zero_nonfinite_grads=True), "optimizer.zero_nonfinite_grads = false"),
        (replace(LENET, augment=True), "augment = none"),
        (replace(LENET, proximal=True), "a method without proximal term"),
        (replace(LENET, unlabelled=True), "public samples whose labels are known"),
        (replace(LENET, precision="bf16"), "precision = f32"),
        (replace(LENET, device="cuda"), "device = cpu"),
    ],
)
def test_what_it_cannot_do_is_refused(workload, need):
    assert NativeEngine.unsupported(workload) == need
    with refused(f"engine = 'native' needs {need}; or use engine = 'auto'"):
        check_engine("native", [PERCEPTRON, workload])


def test_images_of_another_size_are_refused(federation):
    with refused("needs images of 28 x 28 x 1 for lenet"):
        federation(models=["lenet"], engine="native")


def test_without_a_compiler_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(FedlogitError, match=r"needs a C\+\+ compiler \(apt-get install g\+\+\)"):
        compiler.compiled("mlp")
