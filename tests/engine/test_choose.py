"""Which engine runs a run: the one that is named if it fits, or the fastest that does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.refusals import refused

from fedlogit.engine import choose as chooser
from fedlogit.engine.base import Workload
from fedlogit.engine.choose import choose_engine
from fedlogit.engine.native import NativeEngine, compiler
from fedlogit.spec import Optimizer

ADAM, SGD = Optimizer(name="adam", lr=0.001), Optimizer(name="sgd", lr=0.1)
LENET = Workload("lenet", "cpu", ADAM)
PERCEPTRON = Workload("mlp_net", "cpu", SGD)
CONVOLUTIONS = Workload("tf_cnn", "cpu", ADAM)
RESIDUAL = replace(CONVOLUTIONS, model="resnet18")
GPT = Workload("tiny_gpt", "cpu", Optimizer(name="adamw", lr=0.001))


@pytest.fixture
def compiler_found(monkeypatch):
    monkeypatch.setattr(NativeEngine, "unavailable", lambda _workload: None)


@pytest.fixture
def no_compiler(monkeypatch, tmp_path):
    """A machine without a C++ compiler, which has said nothing yet."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    compiler.load.cache_clear()
    chooser._say.cache_clear()


@pytest.mark.parametrize(
    ("workloads", "wanted"),
    [
        ([LENET], "native"),
        ([PERCEPTRON], "native"),
        ([PERCEPTRON, replace(PERCEPTRON, model="mlp4w")], "native"),
        ([PERCEPTRON, RESIDUAL], "loop"),  # one engine runs all clients
        ([replace(LENET, optimizer=SGD)], "native"),
        ([replace(LENET, augment=True, proximal=True, unlabelled=True)], "native"),
        ([replace(PERCEPTRON, augment=True)], "loop"),
        ([replace(PERCEPTRON, precision="bf16")], "loop"),
        ([CONVOLUTIONS], "native"),
        ([PERCEPTRON, replace(CONVOLUTIONS, augment=True, proximal=True)], "native"),
        ([RESIDUAL], "unpadded"),
        ([RESIDUAL, replace(RESIDUAL, model="resnet_light", proximal=True)], "unpadded"),
        ([replace(RESIDUAL, precision="bf16")], "loop"),
        ([replace(RESIDUAL, model="resnet20_heavy")], "loop"),  # where it would not pay
        ([GPT], "loop"),
    ],
)
@pytest.mark.usefixtures("compiler_found")
def test_the_fastest_on_a_cpu(workloads, wanted):
    assert choose_engine("auto", workloads).name == wanted


@pytest.mark.parametrize(
    ("workloads", "wanted"),
    [
        ([LENET], "graphed"),
        ([replace(LENET, model="lenet_bn", augment=True, proximal=True)], "graphed"),
        ([PERCEPTRON, CONVOLUTIONS], "graphed"),
        ([replace(RESIDUAL, precision="bf16")], "graphed"),
        ([GPT], "graphed"),
        ([LENET, replace(LENET, model="my_models:Mine")], "loop"),  # which may wait for the GPU
    ],
)
def test_the_fastest_on_a_gpu(workloads, wanted):
    there = [replace(workload, device="cuda") for workload in workloads]
    assert choose_engine("auto", there).name == wanted


@pytest.mark.usefixtures("compiler_found")
@pytest.mark.parametrize("name", ["loop", "native", "stacked"])
def test_the_one_that_is_named(name):
    assert choose_engine(name, [PERCEPTRON]).name == name


@pytest.mark.usefixtures("compiler_found")
def test_one_workload_of_several_that_does_not_fit_is_enough():
    need = "models = lenet, lenet_bn, lenet_tanh, tf_cnn, or perceptrons such as mlp_net"
    with refused(f"engine = 'native' needs {need}; or use engine = 'auto'"):
        choose_engine("native", [PERCEPTRON, RESIDUAL])


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_the_loop_is_next_which_is_said_once(capsys):
    for _ in range(2):
        assert choose_engine("auto", [LENET]).name == "loop"
    assert choose_engine("auto", [PERCEPTRON]).name == "loop"
    said = capsys.readouterr().err
    assert said.startswith("engine = auto takes the next fastest here: engine = 'native' needs a")
    assert "apt-get install g++" in said
    assert said.count("\n") == 1


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_the_engine_that_is_named_is_refused():
    with refused("engine = 'native' needs a C++ compiler (apt-get install g++); or use engine ="):
        choose_engine("native", [LENET])
