"""What every engine must do: the loop's steps for every method, and the same bits every time."""

from __future__ import annotations

import shutil
from functools import partial

import pytest
import torch
from support.every_method import ON_TEXT, VARIANTS, changes
from support.refusals import refused
from support.resuming import whole_and_resumed
from support.rounds import play
from support.small import TEXT, enlarged, small_spec

from fedlogit import methods
from fedlogit.engine.worker_pool import Cancelled
from fedlogit.errors import Diverged

SGD = {"name": "sgd", "lr": 0.05}
PERCEPTRONS = {"optimizer": SGD}
needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine"
)
NATIVE = pytest.param("native", marks=needs_compiler)
ENGINES = ["loop", "stacked", NATIVE]
PROXIMAL = [v for v in VARIANTS if methods.get(small_spec(**changes(v)).method).uses_proximal_term]


def one_round(fed):
    """Return a federation after its first round."""
    return play(fed, methods.get(fed.spec.method))


def agree(federation, engine, given):
    """Compare a round of a method with the loop's: bytes, columns and models."""
    loop, other = (one_round(federation(engine=name, **given)) for name in ("loop", engine))
    assert other.ledger.totals() == loop.ledger.totals()
    timed = lambda log: {k: v for k, v in log.items() if not k.startswith("seconds")}  # noqa: E731
    assert timed(other.take_log()) == pytest.approx(
        timed(loop.take_log()), rel=1e-3, abs=0.02, nan_ok=True
    )
    first = federation(engine="loop", **given)
    for start, a, b in zip(first.models, loop.models, other.models, strict=True):
        moved = (a.vector - start.vector).norm()
        assert (b.vector - a.vector).norm() <= 0.02 * moved
        assert torch.equal(b.state().counters, a.state().counters)


@pytest.mark.parametrize("call", VARIANTS + ON_TEXT)
def test_a_round_of_every_method_with_the_stacked_engine(federation, call):
    agree(federation, "stacked", changes(call))


@needs_compiler
@pytest.mark.parametrize("call", [v for v in VARIANTS if v not in PROXIMAL])
def test_a_round_of_every_method_with_the_native_engine(federation, call):
    agree(federation, "native", changes(call) | PERCEPTRONS)


@pytest.mark.parametrize("call", PROXIMAL)
def test_every_method_with_a_proximal_term_is_refused_by_the_native_engine(federation, call):
    with refused("engine = 'native' needs a method without proximal term"):
        federation(engine="native", **changes(call) | PERCEPTRONS)


def test_some_methods_have_a_proximal_term():
    assert {call.partition("(")[0] for call in PROXIMAL} == {"fedprox", "tally_train"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_checkpoint_in_between_changes_no_bit(federation, tmp_path, engine):
    given = PERCEPTRONS | {"partition": "dir_client(0.5)"}
    whole, resumed = whole_and_resumed(partial(federation, engine=engine, **given), tmp_path)
    assert torch.equal(whole.vectors(), resumed.vectors())


@needs_compiler
def test_adams_moments_of_the_native_engine_are_in_a_checkpoint(federation, digits, tmp_path):
    build = partial(federation, data=enlarged(digits), engine="native", models=["lenet"])
    whole, resumed = whole_and_resumed(build, tmp_path)
    assert torch.equal(whole.vectors(), resumed.vectors())


@pytest.mark.parametrize("engine", ENGINES)
def test_workers_change_no_bit(federation, engine):
    one, three = (federation(engine=engine, workers=w, **PERCEPTRONS) for w in (1, 3))
    for fed in (one, three):
        fed.round = 1
        fed.train_private()
        fed.distil(fed.public, fed.logits(fed.public).softmax(-1).mean(0))
    assert torch.equal(one.vectors(), three.vectors())


@pytest.mark.parametrize("engine", ENGINES)
def test_the_client_that_diverged_is_named(federation, engine):
    fed = federation(engine=engine, **PERCEPTRONS)
    with torch.no_grad():
        fed.clients[2].vector[0] = torch.nan
    with pytest.raises(Diverged, match="client 2 in private training"):
        fed.train_private()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_is_cancelled_trains_nobody_and_asks_nobody(federation, engine):
    fed = federation(engine=engine, **PERCEPTRONS)
    before = fed.vectors()
    fed.engine.pool.cancelled.value = 1
    with pytest.raises(Cancelled):
        fed.train_private()
    with pytest.raises(Cancelled):
        fed.logits(fed.public)
    assert torch.equal(fed.vectors(), before)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_task_is_told_to_a_progress_bar(federation, engine):
    fed, told = federation(engine=engine, **PERCEPTRONS), []
    fed.engine.on_task = lambda: told.append(1)
    fed.train_private()
    assert len(told) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_models_that_do_not_train_keep_their_gradients_off(federation, engine):
    """`predict` is a generator: what it switches off must be on again between two batches."""
    fed = federation(engine=engine, **PERCEPTRONS)
    batches = (fed.data.inputs(part) for part in fed.public.split(20))
    for logits in fed.engine.predict(fed.clients, batches):
        assert logits.shape == (4, 20, 10)
        assert not logits.requires_grad
        assert torch.is_grad_enabled()


def test_passes_on_a_gpu_are_larger_unless_answers_depend_on_them(federation):
    def samples(device: str, **given) -> int:
        fed = federation(**given)
        fed.data.device = torch.device(device)
        return fed.engine.prediction_batch(fed.models)

    running, own = "resnet_light(1)", "resnet_light(1, batch_stats=True)"
    assert samples("cpu") == samples("cuda", engine="stacked") == 500
    assert samples("cuda") == samples("cuda", models=[running]) == 2000
    assert samples("cuda", models=[own]) == samples("cuda", models=[running, own]) == 500
    assert samples("cuda", **TEXT) == samples("cpu", **TEXT) == 8192 // 32
