"""The native engine against the autograd loop, which is the reference."""

import copy
import ctypes
import itertools
import math
import platform
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from support.gradients import flat_with_gradient
from support.own_models import TanhNet
from support.refusals import refused

from fedlogit.data import UNKNOWN
from fedlogit.engine.base import Workload
from fedlogit.engine.choose import check_engine
from fedlogit.engine.client import flatten
from fedlogit.engine.cpu import cpu_field
from fedlogit.engine.loop import LoopEngine
from fedlogit.engine.native import NativeEngine, compiler
from fedlogit.engine.native.lenet import train_lenet
from fedlogit.engine.native.mlp import mlp_logits, train_mlp
from fedlogit.engine.native.passes import LENET, LENET_BN, LENET_TANH, TF_CNN
from fedlogit.engine.task import ClientTask
from fedlogit.engine.transforms import CROP_PADDING, crop_and_flip
from fedlogit.errors import FedlogitError
from fedlogit.models import build
from fedlogit.models.layers import BatchStatNorm
from fedlogit.spec import Optimizer

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine"
)
SHAPE = (1, 28, 28)
SCALE, SHIFT = [0.013, 0.02, 0.009, 0.01], [-0.42, 0.1, -1.0, -0.2]  # of each channel


def normalised(x, dtype):
    """Return pixels as a network sees them."""
    scale, shift = (
        torch.tensor(v[: x.shape[1]], dtype=dtype)[:, None, None] for v in (SCALE, SHIFT)
    )
    return x.to(dtype) * scale + shift


def trained(model, x, *order, crops=None, temperature=1.0):
    """Return flat parameters, Adam's first moment and the summed loss after training."""
    vector = flatten(copy.deepcopy(model)).data
    moments = (torch.zeros_like(vector), torch.zeros_like(vector))
    total = train_lenet(
        type(model), vector, moments, x, *order, crops=crops, temperature=temperature,
        scale=SCALE[: x.shape[1]], shift=SHIFT[: x.shape[1]],
        adam=(1e-3, 0.9, 0.999, 1e-8), steps=0, cancel=ctypes.c_int(0),
    )  # fmt: skip
    return vector, moments[0], total


def reference(model, x, distributions, rows, targets, ends, dtype, temperature):
    """Return flat parameters and summed loss after training by autograd and PyTorch's Adam."""
    model = copy.deepcopy(model).to(dtype)
    vector = flat_with_gradient(model)
    optimizer = torch.optim.Adam([vector], 1e-3)
    total, begin = 0.0, 0
    for end in ends.tolist():
        part = slice(begin, end)
        vector.grad.zero_()
        images = normalised(x[rows[part]], dtype)
        logits, wanted = model(images), distributions[targets[part]].to(dtype)
        loss = temperature**2 * F.cross_entropy(logits / temperature, wanted)
        loss.backward()
        optimizer.step()
        total += loss.item() * (end - begin)
        begin = end
    return vector.detach(), total


@needs_compiler
@pytest.mark.parametrize("name", ["lenet", "lenet_tanh"])
@pytest.mark.parametrize(
    ("shape", "classes", "sizes", "temperature"),
    [
        (SHAPE, 10, [128, 128, 44], 1.0),
        (SHAPE, 10, [128, 128, 44], 3.0),
        (SHAPE, 47, [16, 1, 17, 3], 1.0),
        ((3, 32, 32), 100, [64, 64, 10], 1.0),
        ((2, 27, 22), 7, [33, 16], 0.5),
        ((4, 12, 13), 5, [1, 15], 1.0),
    ],
)
def test_lenet_is_as_close_to_float64_as_autograd_is(name, shape, classes, sizes, temperature):
    generator = torch.Generator().manual_seed(1)
    model = build(name, shape, classes, torch.Generator().manual_seed(0))
    x = torch.randint(0, 256, (300, *shape), dtype=torch.uint8, generator=generator)
    distributions = (3 * torch.rand(50, classes, generator=generator)).softmax(1)
    rows = torch.randint(0, 300, (sum(sizes),), generator=generator)
    targets = torch.randint(0, 50, (sum(sizes),), generator=generator)
    ends = torch.tensor(sizes).cumsum(0)
    case = (model, x, distributions, rows, targets, ends)
    exact, exact_loss = reference(*case, torch.float64, temperature)
    single, _ = reference(*case, torch.float32, temperature)

    order = (rows, targets, distributions, ends)
    vector, _, total = trained(model, x, *order, temperature=temperature)
    assert total == pytest.approx(exact_loss, rel=1e-6)
    # Adam divides by the root of the second moment, so a gradient near zero magnifies rounding; the
    # reference in float32 shows how much is unavoidable.
    error, unavoidable = (vector - exact).abs().max(), (single - exact).abs().max()
    assert error < 5 * unavoidable + 1e-6
    assert error < 1e-3 * len(sizes), "far less than the parameters moved"
    assert (vector - exact).norm() < 1e-3 * (exact - flatten(copy.deepcopy(model)).data).norm()


@needs_compiler
@pytest.mark.parametrize("shape", [SHAPE, (3, 13, 12)])
def test_lenet_crops_and_mirrors_as_the_loop_does(shape):
    """To the bit, each image once with every crop that can be drawn, in two minibatches."""
    generator = torch.Generator().manual_seed(1)
    model = build("lenet", shape, 10, torch.Generator().manual_seed(0))
    every = range(2 * CROP_PADDING + 1)
    crops = torch.tensor(list(itertools.product(every, every, (0, 1)))).T.contiguous()
    n = crops.shape[1]
    x = torch.randint(0, 256, (n, *shape), dtype=torch.uint8, generator=generator)
    rows, targets = torch.randperm(n, generator=generator), torch.arange(n) % 10
    distributions, ends = torch.eye(10), torch.tensor([100, n])
    found = trained(model, x, rows, targets, distributions, ends, crops=crops)
    cropped, in_order = crop_and_flip(x[rows], crops), torch.arange(n)
    wanted = trained(model, cropped, in_order, targets, distributions, ends)
    assert torch.equal(found[0], wanted[0])
    assert found[2] == wanted[2]


@needs_compiler
@pytest.mark.parametrize(
    ("call", "shape", "sizes", "temperature"),
    [
        ("mlp_net", SHAPE, [128, 128, 44], 1.0),
        ("mlp4w", SHAPE, [64, 1, 17], 1.0),
        ("mlp_net(pad=1)", (3, 9, 7), [33, 16], 2.0),
        ("mlp([])", (1, 8, 8), [20, 20], 0.5),
        ("mlp([5, 70])", (1, 8, 8), [128, 3], 1.0),
    ],
)
def test_perceptrons_are_as_close_to_float64_as_autograd_is(call, shape, sizes, temperature):
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
        vector = flat_with_gradient(network)
        sgd = torch.optim.SGD([vector], 0.1)
        by_channel = [torch.tensor(v, dtype=dtype)[:, None, None] for v in (scale, shift)]
        total, begin = 0.0, 0
        for end in ends.tolist():
            part = slice(begin, end)
            vector.grad.zero_()
            images = x[rows[part]].to(dtype) * by_channel[0] + by_channel[1]
            logits, wanted = network(images), distributions[targets[part]].to(dtype)
            loss = temperature**2 * F.cross_entropy(logits / temperature, wanted)
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
        sizes=network.sizes, pad=network.pad,
        scale=scale, shift=shift, rate=0.1, temperature=temperature, cancel=ctypes.c_int(0),
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
    _, moment, _ = trained(model, x, rows, targets, distributions, ends)
    exact = copy.deepcopy(model).double()
    F.cross_entropy(exact(normalised(x, torch.float64)), distributions[targets].double()).backward()
    gradient = torch.cat([p.grad.flatten() for p in exact.parameters()])
    # Adam's first moment after one step is a tenth of the gradient.
    assert torch.allclose(moment.double() * 10, gradient, atol=1e-6)


def passes(model, logits_of, x, y):
    """Return logits and the gradient of all parameters, of a loss that weighs samples unevenly."""
    vector = flat_with_gradient(model)
    logits = logits_of(vector, x)
    losses = F.cross_entropy(logits, y, reduction="none")
    (losses * torch.linspace(0.1, 2, len(y), dtype=losses.dtype)).sum().backward()
    return logits.detach(), vector.grad


def apart(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


PASSES = {"tf_cnn": TF_CNN, "lenet": LENET, "lenet_bn": LENET_BN, "lenet_tanh": LENET_TANH}
# The first kernel, and its place that sees the pixel where the result is.
FIRST = {
    "tf_cnn": ("conv1.weight", 0),
    "lenet": ("conv1.weight", 2),
    "lenet_bn": ("hidden.0.weight", 2),
    "lenet_tanh": ("hidden.0.weight", 2),
}


@needs_compiler
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize(
    ("n", "shape", "classes"),
    [(128, (3, 32, 32), 10), (17, (1, 28, 28), 47), (5, (3, 18, 18), 3), (33, (2, 27, 22), 7)],
)
def test_compiled_passes_are_as_close_to_float64_as_autograd_is(name, n, shape, classes):
    """Sides of 27 and 28 make pools drop a row; 17 and 33 samples leave a vector partly empty."""
    generator = torch.Generator().manual_seed(1)
    model = build(name, shape, classes, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for norm in model.modules():
            if isinstance(norm, BatchStatNorm):  # some scales are negative then
                norm.weight.normal_(generator=generator)
                norm.bias.normal_(generator=generator)
    x = torch.randn(n, *shape, generator=generator)
    y = torch.randint(0, classes, (n,), generator=generator)
    double = copy.deepcopy(model).double()
    exact, exact_gradient = passes(double, lambda _, x: double(x), x.double(), y)
    network = copy.deepcopy(model)
    single, single_gradient = passes(network, lambda _, x: network(x), x, y)
    logits, gradient = passes(
        copy.deepcopy(model), lambda vector, x: PASSES[name].logits(vector, x, classes), x, y
    )
    assert apart(logits, exact) < 2 * apart(single, exact) + 1e-7
    assert apart(gradient, exact_gradient) < 2 * apart(single_gradient, exact_gradient) + 1e-7
    with torch.no_grad():  # keeps nothing for a way back
        assert torch.equal(PASSES[name].logits(flatten(model), x, classes), logits)


@needs_compiler
@pytest.mark.parametrize("name", ["lenet", "lenet_tanh"])
@pytest.mark.parametrize("n", [1, 16])
@pytest.mark.parametrize("shape", [(4, 12, 13), (1, 13, 30)])
def test_compiled_lenet_takes_the_smallest_images(name, n, shape):
    test_compiled_passes_are_as_close_to_float64_as_autograd_is(name, n, shape, 2)


@needs_compiler
@pytest.mark.parametrize("size", [1e-6, 0.1, 3.0, 1e3, 1e30, math.inf])
def test_compiled_tanh_is_pytorchs_from_tiny_values_to_infinite_ones(size):
    """The first layer's weights are so large; its bias is 0.3, a value that tanh changes."""
    model = build("lenet_tanh", SHAPE, 10, torch.Generator().manual_seed(0))
    with torch.no_grad():
        first = model.hidden[0]
        first.weight.zero_()
        first.weight[:, :, 2, 2] = 1
        first.bias.fill_(0.3 if size < 1 else 0)
    x = torch.randn(3, *SHAPE, generator=torch.Generator().manual_seed(1)).sign() * size
    with torch.no_grad():
        found = LENET_TANH.logits(flatten(copy.deepcopy(model)), x, 10)
        wanted = copy.deepcopy(model).double()(x.double())
    finite = math.isfinite(size)  # else a padded zero times infinity is no number here
    assert bool(found.isfinite().all()) is finite
    if finite:
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("name", PASSES)
def test_a_gradient_that_does_not_lie_in_a_row_is_the_same(name):
    """That of a plain sum is one number, which stands for all."""
    model = build(name, (3, 18, 18), 10, torch.Generator().manual_seed(0))
    vector = flat_with_gradient(model)
    x = torch.randn(17, 3, 18, 18, generator=torch.Generator().manual_seed(1))
    found = []
    for loss in (torch.sum, lambda logits: (logits * torch.ones(17, 10)).sum()):
        vector.grad.zero_()
        loss(PASSES[name].logits(vector, x, 10)).backward()
        found.append(vector.grad.clone())
    assert torch.equal(*found)


@needs_compiler
def test_one_sample_is_not_normalised_by_itself_as_in_pytorch():
    model = build("lenet_bn", (3, 20, 20), 10, torch.Generator().manual_seed(0))
    engine = NativeEngine(SimpleNamespace(classes=10), pool=None)
    client = SimpleNamespace(model=model, vector=flatten(model))
    x = torch.randn(2, 3, 20, 20, generator=torch.Generator().manual_seed(1))
    assert torch.equal(engine.logits(client, x), LENET_BN.logits(client.vector, x, 10))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        engine.logits(client, x[:1])


@needs_compiler
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("tied", [(2, 2), (1, 2), (2, 1)], ids=["all", "rows", "columns"])
def test_ties_in_a_pool_go_to_the_first_in_compiled_passes_as_in_pytorch(name, tied):
    """Kernels see one pixel of one channel, in which all of a window are equal, or neighbours.

    The gradients of what they do not see yet depend on who won.
    """
    model = build(name, (3, 20, 20), 10, torch.Generator().manual_seed(3))
    x = torch.randn(16, 3, 20, 20, generator=torch.Generator().manual_seed(4))
    tall, wide = tied
    x[:, 0] = x[:, 0, ::tall, ::wide].repeat_interleave(tall, 1).repeat_interleave(wide, 2)
    y = torch.arange(16) % 10
    with torch.no_grad():
        kernel, place = FIRST[name]
        first = dict(model.named_parameters())[kernel]
        first.zero_()
        first[:, 0, place, place] = 1
    network = copy.deepcopy(model)
    _, expected = passes(network, lambda _, x: network(x), x, y)
    _, found = passes(model, lambda vector, x: PASSES[name].logits(vector, x, 10), x, y)
    assert apart(found, expected.double()) < 1e-5


@needs_compiler
@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the options are of x86-64")
@pytest.mark.parametrize("without", ["-mno-amx-bf16", "-mno-avx512f", "-mno-avx"])
def test_without_tiles_and_with_narrower_vectors_it_is_as_close(monkeypatch, without):
    if "amx" in without and "amx_bf16" not in cpu_field("flags"):
        pytest.skip("this CPU has no tiles (AMX)")
    monkeypatch.setenv("CXX", f"{shutil.which('g++') or shutil.which('clang++')} {without}")
    compiler.load.cache_clear()
    try:
        test_lenet_is_as_close_to_float64_as_autograd_is(
            "lenet_tanh", (3, 32, 32), 10, [16, 1, 17, 3], 2.0
        )
        test_perceptrons_are_as_close_to_float64_as_autograd_is("mlp4w", SHAPE, [64, 1, 17], 2.0)
        test_logits_of_perceptrons_are_as_close_to_float64_as_pytorchs_are("mlp4w", SHAPE, 17)
        for name in PASSES:
            test_compiled_passes_are_as_close_to_float64_as_autograd_is(name, 17, SHAPE, 47)
    finally:
        compiler.load.cache_clear()


@needs_compiler
@pytest.mark.parametrize(
    ("call", "shape", "n"),
    [
        ("mlp_net", SHAPE, 200),
        ("mlp4w", SHAPE, 17),
        ("mlp_net(pad=1)", (3, 9, 7), 97),
        ("mlp([])", (1, 8, 8), 96),
        ("mlp([5, 70])", (1, 8, 8), 1),
    ],
)
def test_logits_of_perceptrons_are_as_close_to_float64_as_pytorchs_are(call, shape, n):
    model = build(call, shape, 11, torch.Generator().manual_seed(0))
    x = torch.randn(n, *shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        exact, single = copy.deepcopy(model).double()(x.double()), model(x)
        found = mlp_logits(flatten(model), x, sizes=model.sizes, pad=model.pad)
        assert apart(found, exact) < 2 * apart(single, exact) + 1e-7
        assert torch.equal(mlp_logits(flatten(model), x[-1:], sizes=model.sizes, pad=model.pad),
                           found[-1:])  # fmt: skip


def logits_of(name: str, model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    match name:
        case "tf_cnn" | "lenet" | "lenet_bn" | "lenet_tanh":
            return PASSES[name].logits(flatten(model), x, 10)
        case _:
            return mlp_logits(flatten(model), x, sizes=model.sizes, pad=model.pad)


@needs_compiler
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *(("tf_cnn", (3, 32, 32)), ("lenet_bn", (3, 32, 32))),
        *(("lenet", SHAPE), ("lenet_tanh", SHAPE), ("mlp4w", SHAPE)),
    ],
)
def test_weights_that_are_no_numbers_give_logits_that_are_none(name, shape):
    model = build(name, shape, 10, torch.Generator().manual_seed(0))
    with torch.no_grad():
        next(model.parameters()).view(-1)[3] = torch.nan
        assert logits_of(name, model, torch.ones(2, *shape)).isnan().all()


@needs_compiler
def test_cancelling_ends_the_call_at_once():
    model = build("lenet", SHAPE, 10, torch.Generator().manual_seed(0))
    vector = flatten(model).data
    before = vector.clone()
    x = torch.zeros(4, *SHAPE, dtype=torch.uint8)
    loss = train_lenet(
        type(model), vector, (torch.zeros_like(vector), torch.zeros_like(vector)), x,
        torch.arange(4), torch.zeros(4, dtype=torch.int64), torch.eye(10), torch.tensor([4]),
        scale=[1.0], shift=[0.0], adam=(1e-3, 0.9, 0.999, 1e-8), steps=0, cancel=ctypes.c_int(1),
    )  # fmt: skip
    assert loss == 0
    assert torch.equal(vector, before)


ADAM, SGD = Optimizer(name="adam", lr=0.001), Optimizer(name="sgd", lr=0.1)


SOFT = torch.full((4, 10), 0.1)


def done_at_once(monkeypatch, call: str, settings: Optimizer, given: dict[str, object]) -> bool:
    """Return whether a model's task is done in one call, instead of a pass at a time."""
    monkeypatch.setattr(NativeEngine, "_at_once", lambda *_: True)
    monkeypatch.setattr(LoopEngine, "run", lambda *_: False)
    model = build(call, SHAPE, 10, torch.Generator().manual_seed(0))
    client = SimpleNamespace(model=model, settings=settings)
    values = {"labels": torch.arange(4), "batches": [torch.arange(4)]} | given
    task = ClientTask(client=client, indices=torch.arange(4), **values)
    return NativeEngine(SimpleNamespace(classes=10), pool=None).run(task)


@pytest.mark.parametrize(
    ("optimizer", "given", "at_once"),
    [
        ({"beta1": 0.5, "beta2": 0.9, "eps": 1e-3}, {}, True),
        ({}, {"labels": None, "soft": SOFT}, True),
        ({}, {"labels": None, "soft": SOFT, "temperature": 2.0}, True),
        ({}, {"soft": SOFT, "temperature": 2.0}, False),  # the labels' term has none
        ({"name": "adamw"}, {}, False),
        ({"name": "sgd"}, {}, False),
        ({"weight_decay": 0.1}, {}, False),
        ({"clip": 1.0}, {}, False),
        ({"zero_nonfinite_grads": True}, {}, False),
        ({}, {"augment": torch.Generator()}, True),
        ({}, {"prox_center": torch.zeros(3)}, False),
        ({}, {"labels": torch.tensor([0, UNKNOWN, 2, 3])}, False),
        ({}, {"batches": []}, False),
        ({}, {"batches": [torch.arange(2), torch.arange(0)]}, False),
    ],
)
def test_which_tasks_of_lenet_are_done_in_one_call(monkeypatch, optimizer, given, at_once):
    """The others are the loop's, with compiled passes."""
    settings = ADAM.model_copy(update=optimizer)
    assert done_at_once(monkeypatch, "lenet", settings, given) is at_once


@pytest.mark.parametrize(
    ("optimizer", "given", "at_once"),
    [
        ({}, {}, True),
        ({"momentum": 0.9}, {}, False),
        ({"name": "adam"}, {}, False),
        ({}, {"augment": torch.Generator()}, False),
        ({}, {"prox_center": torch.zeros(3)}, False),
        ({}, {"labels": torch.tensor([0, UNKNOWN, 2, 3])}, False),
        ({}, {"soft": SOFT, "temperature": 2.0}, False),
    ],
)
def test_which_tasks_of_perceptrons_are_done_in_one_call(monkeypatch, optimizer, given, at_once):
    """A method may give one that its workload does not tell of; nothing is then left out."""
    settings = SGD.model_copy(update=optimizer)
    assert done_at_once(monkeypatch, "mlp(hidden=[4])", settings, given) is at_once


def test_a_perceptron_that_does_something_else_is_left_to_pytorch(monkeypatch):
    """Compiled code would do what the class does that it is derived from."""
    model, x = TanhNet(SHAPE, (4,), 10, 0), torch.rand(3, *SHAPE)
    engine = NativeEngine(SimpleNamespace(classes=10), pool=None)
    with torch.no_grad():
        found = engine.logits(SimpleNamespace(model=model, vector=flatten(model)), x)
        assert torch.equal(found, model(x))
    monkeypatch.setattr("support.own_models.TanhMlp.network", lambda *_: model)
    assert not done_at_once(monkeypatch, "support.own_models:TanhMlp", SGD, {})


PERCEPTRON = Workload("mlp", "cpu", SGD)
CNN = Workload("tf_cnn", "cpu", SGD, augment=True, proximal=True, unlabelled=True)


def optimizer(workload: Workload, **changes) -> Workload:
    """Return the workload with other settings of its optimizer."""
    return replace(workload, optimizer=workload.optimizer.model_copy(update=changes))


@pytest.mark.parametrize(
    "workload",
    [
        *(PERCEPTRON, replace(PERCEPTRON, model="mlp4w"), CNN),
        *(replace(CNN, model=name, optimizer=ADAM) for name in ("lenet", "lenet_bn", "lenet_tanh")),
    ],
)
def test_what_it_can_do(workload):
    assert NativeEngine.unsupported(workload) is None


@pytest.mark.parametrize(
    ("workload", "need"),
    [
        (
            replace(CNN, model="resnet18"),
            "models = lenet, lenet_bn, lenet_tanh, tf_cnn, or perceptrons such as mlp_net",
        ),
        (replace(CNN, precision="bf16"), "precision = f32"),
        (replace(CNN, device="cuda"), "device = cpu"),
        (replace(PERCEPTRON, optimizer=ADAM), "optimizer.name = sgd"),
        (optimizer(PERCEPTRON, momentum=0.9), "optimizer.momentum = 0"),
        (optimizer(PERCEPTRON, weight_decay=0.1), "optimizer.weight_decay = 0"),
        (optimizer(PERCEPTRON, clip=1.0), "optimizer.clip = null"),
        (
            optimizer(PERCEPTRON, zero_nonfinite_grads=True),
            "optimizer.zero_nonfinite_grads = false",
        ),
        (replace(PERCEPTRON, augment=True), "augment = none"),
        (replace(PERCEPTRON, proximal=True), "a method without proximal term"),
        (replace(PERCEPTRON, unlabelled=True), "public samples whose labels are known"),
    ],
)
def test_what_it_cannot_do_is_refused(workload, need):
    assert NativeEngine.unsupported(workload) == need
    with refused(f"engine = 'native' needs {need}; or use engine = 'auto'"):
        check_engine("native", [PERCEPTRON, workload])


def test_without_a_compiler_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(FedlogitError, match=r"needs a C\+\+ compiler \(apt-get install g\+\+\)"):
        compiler.compiled("mlp")
