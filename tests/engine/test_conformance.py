"""Every engine does what the loop does: each kind of task with each kind of model, phase by phase.

Engines add up in another order, so they agree within a tolerance: after a phase a model is at most
`OF_THE_WAY` of the way that it went apart from the loop's, its loss `OF_A_LOSS`, and what batch
norms count is the same to the bit. What an engine does not support it refuses in one line.
"""

from __future__ import annotations

import shutil
from functools import cache

import pytest
import torch
from support.refusals import refused
from support.resuming import whole_and_resumed
from support.small import TEXT, enlarged
from support.tiers import first_of_each
from torch import nn

from fedlogit.data import UNKNOWN
from fedlogit.engine.client import Client
from fedlogit.engine.task import ClientTask, minibatches
from fedlogit.engine.worker_pool import Cancelled
from fedlogit.errors import Diverged
from fedlogit.federation import Federation
from fedlogit.models import ModelConfig

OF_THE_WAY = 0.05
OF_A_LOSS = 1e-3

# torchvision's attention in lock-step
pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")
needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine"
)
UNEVEN = {
    "partition": "dir_client(0.5)",
    "train_size": 300,
    "public": {"size": 60},
    "batch": 16,
    "local": {"steps": 3},  # of phases that are not given a task
}
SGD = {"name": "sgd", "lr": 0.05}
MOMENTUM = SGD | {"momentum": 0.9, "lr": 0.02}
ADAM = {"name": "adam", "lr": 0.003}
# Kinds of models, each with an optimizer of another kind.
MODELS = {
    "perceptrons": {"models": ["mlp(hidden=[16])"], "optimizer": SGD},
    "two architectures": {
        "models": ["mlp(hidden=[16])", "mlp4w"],
        "optimizer": {"name": "adamw", "lr": 0.003, "weight_decay": 0.01},
    },
    "lenet": {"models": ["lenet"], "optimizer": ADAM},  # in one call, where nothing else is asked
    "lenet with clipped Adam": {"models": ["lenet"], "optimizer": ADAM | {"clip": 0.1}},
    "lenet with other moments": {
        "models": ["lenet"],
        "optimizer": ADAM | {"beta1": 0.5, "beta2": 0.9, "eps": 1e-3},
    },
    "lenet_tanh": {"models": ["lenet_tanh"], "optimizer": ADAM},
    "tf_cnn": {"models": ["tf_cnn"], "optimizer": MOMENTUM | {"clip": 1.0}},
    "lenet_bn": {"models": ["lenet_bn"], "optimizer": MOMENTUM},
    "batch norm": {"models": ["resnet_light(1)"], "optimizer": MOMENTUM | {"lr": 0.005}},
    "statistics of a batch": {
        "models": ["resnet_light(1, batch_stats=True)"],
        "optimizer": SGD | {"lr": 0.01},
    },
    "a transformer of images": {
        "models": ["vit_tiny(width=16, layers=1, patch=4)"],
        "optimizer": SGD | {"clip": 1.0},
    },
    "a text": TEXT,
}
ONE_POSITION = {
    "models": ["resnet18(batch_stats=True)"],
    "optimizer": SGD | {"lr": 0.01},
    "clients": 2,  # of eleven million parameters each
    "batch": 45,  # a ReLU that rounding moves past 0 changes 13 % of a step of five samples
}
WIDE = {"stages of one position": ONE_POSITION}  # too wide to be stacked in a test
# Whose passes are compiled.
PASSES = (
    *("lenet", "lenet with clipped Adam", "lenet with other moments"),
    *("lenet_bn", "lenet_tanh", "tf_cnn"),
)
NATIVE = ("perceptrons", *PASSES)  # what compiled code can train
UNPADDED = ("batch norm", "statistics of a batch", "stages of one position")
LARGER = PASSES  # which need larger images than digits
# Rounding grows from step to step where layers are many, or divide by what varies little.
STEPS = {name: 2 for name in MODELS if name not in ("perceptrons", "two architectures", "a text")}
STEPS["stages of one position"] = 1  # which divide by the deviation of a few values
ENGINES = pytest.mark.parametrize(
    "engine", ["loop", "stacked", "unpadded", pytest.param("native", marks=needs_compiler)]
)
MARKS = {model: [pytest.mark.slow] for model in STEPS}
# Engines beside the loop, each with the models that it can train.
BESIDE = [
    *(pytest.param("stacked", model, marks=MARKS.get(model, [])) for model in MODELS),
    *(pytest.param("native", model, marks=needs_compiler) for model in NATIVE),
    *(pytest.param("unpadded", model, marks=pytest.mark.slow) for model in UNPADDED),
]
LOOP = [pytest.param("loop", model, marks=MARKS.get(model, [])) for model in MODELS]
OTHERS = pytest.mark.parametrize(("engine", "model"), BESIDE)
ABLE = pytest.mark.parametrize(("engine", "model"), LOOP + BESIDE)


@pytest.fixture(autouse=True)
def one_route_of_products():
    """Whatever ran before in this process, products go the way that PyTorch takes by default."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


@cache  # what is for everybody is one tensor, as in a run
def distributions(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).mul(3).softmax(-1)


def soft(fed: Federation, n: int, seed: int) -> torch.Tensor:
    """Return distributions of as many axes as logits have, (n, classes) or (n, T, classes)."""
    return distributions((n, *fed.data.labels.shape[1:], fed.classes), seed)


def labels(fed, client):
    return {"labels": fed.data.labels[client.private]}


def own(fed, client):
    return {"soft": soft(fed, client.samples, client.index)}


def shared(fed, _client):
    return {"indices": fed.public, "soft": soft(fed, len(fed.public), 99)}


def uneven_rows(fed, _client):
    """Soft targets as `distil_server` gives them: a row's sum is how much it weighs."""
    targets = soft(fed, len(fed.public), 99)
    weights = torch.linspace(0.2, 1.8, len(targets)).view(-1, *[1] * (targets.dim() - 1))
    return {"indices": fed.public, "soft": targets * weights}


def once(fed, client):
    return shared(fed, client) | {"batches": [torch.arange(len(fed.public))]}


def cropped(fed, client):
    crops = torch.Generator().manual_seed(10 * fed.round + client.index)
    return labels(fed, client) | {"augment": crops}


def partly_known(fed, client):
    known = labels(fed, client)["labels"].clone()
    known[::3] = UNKNOWN
    return {"labels": known}


def pulled(fed, client):
    center = client.vector.detach() + 0.01
    return labels(fed, client) | {"prox_center": center, "proximal_mu": 0.5}


# Kinds of tasks: what a client is to learn, from a federation and the client.
TASKS = {
    "hard targets": labels,
    "hard targets with a weight": lambda *who: labels(*who) | {"label_weight": 0.3},
    "soft targets of each client": own,
    "soft targets of everybody": shared,
    "soft targets with weights": uneven_rows,
    "both": lambda *who: labels(*who) | own(*who) | {"label_weight": 0.5},
    "soft targets with a temperature": lambda *who: own(*who) | {"temperature": 3.0},
    "both, with a temperature": lambda *who: TASKS["both"](*who) | {"temperature": 0.5},
    "a single step": once,
}
# Those that compiled code refuses where it has no passes.
REST = {
    "crops and flips": cropped,
    "a proximal term": pulled,
    "labels of some samples": partly_known,
    "all of these, and soft targets": lambda *who: own(*who) | cropped(*who) | pulled(*who),
}


def task(fed: Federation, client: Client, kind, steps: int) -> ClientTask:
    """Return a task of the last `steps` of two epochs; a last minibatch is smaller."""
    given = {"indices": client.private} | kind(fed, client)
    order = fed.torch_rng("batches", client.index, fed.round)
    batches = minibatches(len(given["indices"]), fed.spec.batch, order, epochs=2, steps=None)
    return ClientTask(**{"client": client, "batches": batches[-steps:]} | given)


@pytest.fixture
def one(federation, digits):
    """Return a function that builds a federation for an engine."""

    def build(engine: str, model: str, **changes) -> Federation:
        given = UNEVEN | (MODELS | WIDE)[model] | changes
        data = enlarged(digits) if model in LARGER else None
        fed = federation(data=data, engine=engine, **given)
        assert fed.engine.name == engine
        return fed

    return build


@pytest.fixture
def pair(one):
    """Return a function that builds a federation for the loop and the same for another engine."""

    def build(engine: str, model: str, **changes) -> tuple[Federation, Federation]:
        return one("loop", model, **changes), one(engine, model, **changes)

    return build


def compare(
    loop: Federation,
    other: Federation,
    kind,
    steps: int,
    of_the_way: float = OF_THE_WAY,
    of_a_loss: float = OF_A_LOSS,
) -> None:
    """Let both do a phase, and compare; then both go on from where the loop is."""
    loop.round = other.round = loop.round + 1
    starts = [client.vector.detach().clone() for client in loop.clients]
    wanted, found = (
        fed.engine.train([task(fed, client, kind, steps) for client in fed.clients])
        for fed in (loop, other)
    )
    assert found == pytest.approx(wanted, rel=of_a_loss)
    for start, a, b in zip(starts, loop.clients, other.clients, strict=True):
        moved = (a.vector - start).norm()
        assert moved > 0
        assert (b.vector - a.vector).norm() <= of_the_way * moved
        torch.testing.assert_close(b.state().buffers, a.state().buffers, rtol=1e-4, atol=1e-4)
        assert torch.equal(b.state().counters, a.state().counters)
        b.load(a.state())  # what is left of another rounding would grow from phase to phase


@pytest.mark.parametrize("model", first_of_each(MODELS, lambda _: "any"))
@pytest.mark.parametrize("kind", TASKS | REST)
def test_the_stacked_engine_does_every_task_with_every_model(pair, model, kind):
    if model == "a text" and kind in ("crops and flips", "all of these, and soft targets"):
        pytest.skip("a text is never augmented")
    loop, stacked = pair("stacked", model)
    for rate in (1.0, 0.1):  # an optimizer's state goes on from phase to phase
        for client in (*loop.clients, *stacked.clients):
            client.set_rate(rate)
        compare(loop, stacked, (TASKS | REST)[kind], STEPS.get(model, 99))


@needs_compiler
@pytest.mark.parametrize(
    ("kind", "model"),
    [(kind, model) for model in NATIVE for kind in TASKS]
    + [(kind, model) for model in PASSES for kind in REST],
)
def test_the_native_engine_does_every_task_that_it_supports(pair, model, kind):
    loop, native = pair("native", model)
    for rate in (1.0, 0.1):
        for client in (*loop.clients, *native.clients):
            client.set_rate(rate)
        compare(loop, native, (TASKS | REST)[kind], STEPS.get(model, 99))


@pytest.mark.parametrize("model", first_of_each(UNPADDED, lambda _: "any"))
@pytest.mark.parametrize("kind", TASKS | REST)
def test_the_unpadded_engine_does_every_task_with_residual_networks(pair, model, kind):
    loop, unpadded = pair("unpadded", model)
    for _ in range(2):
        # Adam magnifies rounding where gradients are near 0, to 5.4 % on a CPU without AVX-512.
        compare(loop, unpadded, (TASKS | REST)[kind], STEPS[model], of_the_way=0.1)


@pytest.mark.parametrize("model", [name for name in MODELS if name not in NATIVE])
def test_a_model_that_the_native_engine_cannot_train_is_refused(one, model):
    with refused("engine = 'native' needs ") as error:
        one("native", model)
    assert "; or use engine = 'auto'" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "need"),
    [
        ({"augment": "crop_flip"}, "augment = none"),
        ({"method": "fedprox", "public": None}, "a method without proximal term"),
        ({"precision": "bf16"}, "precision = f32"),
    ],
)
def test_a_task_that_the_native_engine_cannot_do_is_refused(one, changes, need):
    with refused(f"engine = 'native' needs {need}"):
        one("native", "perceptrons", **changes)


@OTHERS
def test_models_whose_heads_are_kept_train_alike(pair, engine, model):
    """Clients take over all but the last layer, which stays each one's own."""
    if model == "two architectures":
        pytest.skip("models of different architectures are not averaged")
    loop, other = pair(engine, model)
    compare(loop, other, labels, STEPS.get(model, 99))
    for fed in (loop, other):
        fed.broadcast(fed.merge(), backbone_only=True)
    one, two = (client.vector[client.head_mask()] for client in other.clients[:2])
    assert not torch.equal(one, two)
    assert torch.equal(loop.vectors(), other.vectors())
    compare(loop, other, labels, STEPS.get(model, 99))


@OTHERS
def test_models_answer_alike(pair, engine, model):
    loop, other = pair(engine, model)
    found, wanted = (fed.logits(fed.public[:7]) for fed in (other, loop))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@ABLE
def test_a_checkpoint_in_between_changes_no_bit(one, tmp_path, engine, model):
    whole, resumed = whole_and_resumed(lambda: one(engine, model), tmp_path)
    for a, b in zip(whole.clients, resumed.clients, strict=True):
        assert torch.equal(a.vector, b.vector)
        assert torch.equal(a.state().buffers, b.state().buffers)


@ABLE
def test_the_client_that_diverged_is_named(one, engine, model):
    fed = one(engine, model)
    with torch.no_grad():
        fed.clients[1].vector.fill_(torch.nan)
    with pytest.raises(Diverged, match="loss of client 1 in private training is nan"):
        fed.train_private()


@pytest.mark.parametrize("model", ["perceptrons", "a text"])
def test_products_in_bfloat16_agree_too(one, pair, model):
    """A number of bfloat16 has 8 bits: what is added up in another order is rounded sooner."""
    loop, stacked = pair("stacked", model, precision="bf16")
    compare(loop, stacked, labels, 1, of_the_way=0.1, of_a_loss=0.01)
    exact = one("loop", model)
    exact.round = 1
    exact.engine.train([task(exact, client, labels, 1) for client in exact.clients])
    assert not torch.equal(exact.clients[0].vector, loop.clients[0].vector)


def small(engine: str) -> dict:
    """Return a small federation that an engine can run."""
    fits = {"models": ["resnet_light(1)"]} if engine == "unpadded" else {}
    return {"engine": engine, "optimizer": SGD, "local": {"steps": 3}} | fits


@ENGINES
def test_workers_change_no_bit(federation, engine):
    one, three = (federation(workers=w, **small(engine)) for w in (1, 3))
    for fed in (one, three):
        fed.round = 1
        fed.train_private()
        fed.distil(fed.public, fed.logits(fed.public).softmax(-1).mean(0))
    assert torch.equal(one.vectors(), three.vectors())


@ENGINES
def test_a_run_that_is_cancelled_trains_nobody_and_asks_nobody(federation, engine):
    fed = federation(**small(engine))
    before = fed.vectors()
    fed.engine.pool.cancelled.value = 1
    with pytest.raises(Cancelled):
        fed.train_private()
    with pytest.raises(Cancelled):
        fed.logits(fed.public)
    assert torch.equal(fed.vectors(), before)


@ENGINES
def test_each_task_is_told_to_a_progress_bar(federation, engine):
    fed, told = federation(**small(engine)), []
    fed.engine.on_task = lambda task, loss: told.append((task.client.index, loss))
    fed.train_private()
    assert sorted(told) == sorted(fed.private_losses.items())
    assert len(told) == 4


@ENGINES
def test_models_that_do_not_train_keep_their_gradients_off(federation, engine):
    """`predict` is a generator: what it switches off must be on again between two batches."""
    fed = federation(**small(engine))
    batches = (fed.data.inputs(part) for part in fed.public.split(20))
    for logits in fed.engine.predict(fed.clients, batches):
        assert logits.shape == (4, 20, 10)
        assert not logits.requires_grad
        assert torch.is_grad_enabled()


class NormalisedByBatch(ModelConfig):
    """A model whose batch norm, PyTorch's own, keeps no running statistics."""

    name = "normalised_by_batch"

    def network(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        layers = [nn.Flatten(1), nn.BatchNorm1d(64, track_running_stats=False)]
        network = nn.Sequential(*layers, nn.Linear(64, classes))
        network.head = "2"
        return network


def test_passes_on_a_gpu_are_larger_unless_answers_depend_on_them(federation):
    def samples(device: str, **given) -> int:
        fed = federation(**given)
        fed.data.device = torch.device(device)
        return fed.engine.prediction_batch(fed.models)

    running, own = "resnet_light(1)", "resnet_light(1, batch_stats=True)"
    assert samples("cpu") == samples("cuda", engine="stacked") == 500
    assert samples("cuda") == samples("cuda", models=[running]) == 2000
    assert samples("cuda", models=[own]) == samples("cuda", models=[running, own]) == 500
    assert samples("cuda", models=[f"{__name__}:NormalisedByBatch"]) == 500
    assert samples("cuda", **TEXT) == samples("cpu", **TEXT) == 8192 // 32
