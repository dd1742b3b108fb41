"""Every engine does what the loop does: each kind of task with each kind of model, phase by phase.

Engines add up in another order, so they agree within a tolerance: after a phase a model is at most
`OF_THE_WAY` of the way that it went apart from the loop's, its loss `OF_A_LOSS`, and what batch
norms count is the same to the bit. What an engine does not support it refuses in one line.
"""

from __future__ import annotations

import shutil

import pytest
import torch
from support.refusals import refused
from support.small import TEXT, enlarged

from fedlogit.engine import Client, ClientTask
from fedlogit.engine.task import minibatches
from fedlogit.errors import Diverged
from fedlogit.federation import Federation

OF_THE_WAY = 0.02
OF_A_LOSS = 1e-3

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine"
)
UNEVEN = {"partition": "dir_client(0.5)", "train_size": 300, "public": {"size": 60}, "batch": 16}
SGD = {"name": "sgd", "lr": 0.05}
MOMENTUM = SGD | {"momentum": 0.9, "lr": 0.02}
ADAM = {"name": "adam", "lr": 0.003}
# Kinds of models, each with an optimizer of another kind; LeNet needs larger images than digits.
MODELS = {
    "perceptrons": {"models": ["mlp(hidden=[16])"], "optimizer": SGD},
    "two architectures": {
        "models": ["mlp(hidden=[16])", "mlp4w"],
        "optimizer": SGD | {"weight_decay": 0.01},
    },
    "lenet": {"models": ["lenet"], "optimizer": ADAM},
    "lenet_bn": {"models": ["lenet_bn"], "optimizer": MOMENTUM},
    "batch norm": {"models": ["resnet_light(1)"], "optimizer": MOMENTUM},
    "statistics of a batch": {
        "models": ["resnet_light(1, batch_stats=True)"],
        "optimizer": SGD | {"clip": 1.0},
    },
    "a transformer of images": {
        "models": ["vit_tiny(width=16, layers=1, patch=4)"],
        "optimizer": {"name": "adamw", "lr": 0.003, "weight_decay": 0.01},
    },
    "a text": TEXT,
}
NATIVE = ("perceptrons", "lenet")  # what compiled code can train
# Rounding grows from step to step where layers are many, or divide by what varies little.
STEPS = {model: 2 for model in MODELS if model not in (*NATIVE, "two architectures", "a text")}


def soft(n: int, fed: Federation, seed: int) -> torch.Tensor:
    """Return distributions of as many axes as logits have, (n, classes) or (n, T, classes)."""
    shape = (n, *fed.data.labels.shape[1:], fed.classes)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).mul(3).softmax(-1)


def labels(fed, client):
    return {"labels": fed.data.labels[client.private]}


def own(fed, client):
    return {"soft": soft(client.samples, fed, client.index)}


def shared(fed, _client):
    return {"indices": fed.public, "soft": soft(len(fed.public), fed, 99)}


def once(fed, client):
    return shared(fed, client) | {"batches": [torch.arange(len(fed.public))]}


def uneven_rows(fed, client):
    """Soft targets as `distil_server` gives them: a row's sum is how much it weighs."""
    given = shared(fed, client)
    weights = torch.linspace(0.2, 1.8, len(fed.public))
    return given | {"soft": given["soft"] * weights.view(-1, *[1] * (given["soft"].dim() - 1))}


# Kinds of tasks: what a client is to learn, from a federation and the client.
TASKS = {
    "hard targets": labels,
    "hard targets with a weight": lambda *who: labels(*who) | {"label_weight": 0.3},
    "soft targets of each client": own,
    "soft targets of everybody": shared,
    "soft targets with weights": uneven_rows,
    "both": lambda *who: labels(*who) | own(*who) | {"label_weight": 0.5, "soft_weight": 2.0},
    "a single step": once,
}
# Those that compiled code refuses.
REST = {
    "crops and flips": lambda fed, client: (
        labels(fed, client) | {"augment": torch.Generator().manual_seed(fed.round)}
    ),
    "a proximal term": lambda fed, client: (
        labels(fed, client)
        | {"prox_center": client.vector.detach() + 0.01, "proximal_mu": 0.5}
    ),
    "both, crops and a proximal term": lambda fed, client: (
        own(fed, client) | REST["crops and flips"](fed, client) | REST["a proximal term"](fed, client)
    ),
}


def task(fed: Federation, client: Client, kind, steps: int) -> ClientTask:
    """Return a task of the last `steps` of two epochs; a last minibatch is smaller."""
    given = {"indices": client.private} | kind(fed, client)
    order = fed.torch_rng("batches", client.index, fed.round)
    batches = minibatches(len(given["indices"]), fed.spec.batch, order, epochs=2, steps=None)
    return ClientTask(**{"client": client, "batches": batches[-steps:]} | given)


@pytest.fixture
def pair(federation, digits):
    """Return a function that builds a federation for the loop and the same for another engine."""

    def build(engine: str, model: str, **changes) -> tuple[Federation, Federation]:
        given = UNEVEN | MODELS[model] | changes
        data = enlarged(digits) if model.startswith("lenet") else None
        loop, other = (federation(data=data, engine=name, **given) for name in ("loop", engine))
        assert other.engine.name == engine
        return loop, other

    return build


def compare(loop: Federation, other: Federation, kind, steps: int) -> None:
    """Let both do a phase, and compare; then both go on from where the loop is."""
    loop.round = other.round = loop.round + 1
    starts = [client.vector.detach().clone() for client in loop.clients]
    wanted, found = (
        fed.engine.train([task(fed, client, kind, steps) for client in fed.clients])
        for fed in (loop, other)
    )
    assert found == pytest.approx(wanted, rel=OF_A_LOSS)
    for start, a, b in zip(starts, loop.clients, other.clients, strict=True):
        moved = (a.vector - start).norm()
        assert moved > 0
        assert (b.vector - a.vector).norm() <= OF_THE_WAY * moved
        torch.testing.assert_close(b.state().buffers, a.state().buffers, rtol=1e-4, atol=1e-4)
        assert torch.equal(b.state().counters, a.state().counters)
        b.load(a.state())  # what is left of another rounding would grow from phase to phase


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torchvision's attention
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", TASKS | REST)
def test_the_stacked_engine_does_every_task_with_every_model(pair, model, kind):
    if model == "a text" and "crops" in kind:
        pytest.skip("a text is never augmented")
    loop, stacked = pair("stacked", model)
    for _ in range(2):  # an optimizer's state goes on from phase to phase
        compare(loop, stacked, (TASKS | REST)[kind], STEPS.get(model, 99))


@needs_compiler
@pytest.mark.parametrize("model", NATIVE)
@pytest.mark.parametrize("kind", TASKS)
def test_the_native_engine_does_every_task_that_it_supports(pair, model, kind):
    loop, native = pair("native", model)
    for _ in range(2):
        compare(loop, native, TASKS[kind], 99)
