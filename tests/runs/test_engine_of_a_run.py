"""A result names its engine, two engines agree on a run, and one does not end another's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.calls import script
from support.outcomes import exported_weights, outcome, same
from support.refusals import refused
from support.resuming import stop_after
from support.small import SMALL, built, small_spec

from fedlogit.engine.native import engine as native
from fedlogit.engine.native.compiler import compiler_version
from fedlogit.files import read_json, write_json
from fedlogit.runs import stages
from fedlogit.runs.client_files import load_weights
from fedlogit.runs.stages import clients_spec, train_clients

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine"
)
NATIVE = pytest.param("native", marks=needs_compiler)
PERCEPTRONS = {"optimizer": {"name": "sgd", "lr": 0.1}, "export": ["weights"]}
ADAM = {"name": "adam", "lr": 0.003}
TAUGHT = {"method": "feddf", "server": {"model": "mlp(hidden=[24])", "epochs": 2}}


def engine_of(folder: Path) -> str:
    return read_json(folder / "result.json")["provenance"]["engine"]


@pytest.mark.slow
def test_a_result_names_the_engine_that_auto_chose(train, tmp_path):
    assert engine_of(train(tmp_path / "adam", engine="auto")) == "loop"
    folder = train(tmp_path / "named", engine="stacked")
    assert engine_of(folder) == "stacked"


@needs_compiler
@pytest.mark.parametrize("engine", ["auto", "native"])
def test_a_server_that_the_engine_cannot_run_has_the_loop_which_is_named(train, tmp_path, engine):
    both = train(tmp_path / "both", engine=engine, **PERCEPTRONS | TAUGHT)
    assert engine_of(both) == "native"
    server = TAUGHT["server"] | {"optimizer": ADAM}
    apart = train(tmp_path / "apart", engine=engine, **PERCEPTRONS | TAUGHT | {"server": server})
    assert engine_of(apart) == "native, server loop"


@needs_compiler
def test_a_server_may_have_the_faster_engine(train, tmp_path):
    server = TAUGHT["server"] | {"optimizer": PERCEPTRONS["optimizer"]}
    folder = train(tmp_path / "x", engine="auto", **TAUGHT | {"server": server})
    assert engine_of(folder) == "loop, server native"


PERCEPTRON = {"models": ["mlp(hidden=[16])"], "optimizer": PERCEPTRONS["optimizer"]}
RESIDUAL = {"models": ["resnet_light(1)"]}


def noted(monkeypatch, fed, name: str, models) -> list[tuple[str, int]]:
    """Return a list that gets, of a call of an engine, its name and the models' numbers."""
    found: list[tuple[str, int]] = []
    for engine in (fed.engine, fed.server_engine):
        original = getattr(engine, name)

        def call(*args, engine=engine, original=original):
            found.extend((engine.name, model.index) for model in models(*args))
            return original(*args)

        monkeypatch.setattr(engine, name, call)
    return found


@pytest.mark.parametrize(
    ("clients", "engine", "model"),
    [
        pytest.param(PERCEPTRON, "native", "TanhMlp", marks=needs_compiler),
        (RESIDUAL, "unpadded", "SamePadding"),
        (RESIDUAL, "unpadded", "FunctionalConvolution"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_servers_model_is_trained_asked_and_tested_by_its_own_engine(
    federation, monkeypatch, clients, engine, model
):
    """The clients' engine was asked about their models alone, and may not know the server's."""
    server = {"model": f"support.own_models:{model}", "epochs": 1}
    evaluation = {"validation": 40, "with_test": True}
    fed = federation(method="feddf", engine=engine, server=server, evaluation=evaluation, **clients)
    assert (fed.engine.name, fed.server_engine.name) == (engine, "loop")
    passed = noted(monkeypatch, fed, "forward", lambda model, x: [model])
    trained = noted(monkeypatch, fed, "train", lambda tasks: [task.client for task in tasks])
    one, other, *_ = fed.clients
    fed.start_round(1)
    fed.distil(fed.public, torch.full((len(fed.public), 10), 0.1), learners=[one, fed.server])
    assert set(trained) == {(engine, one.index), ("loop", fed.server.index)}
    found = fed.logits(fed.public, [other, fed.server, one])
    assert torch.equal(found[1], fed.server_logits(fed.public))
    assert torch.equal(found[[2, 0]], fed.logits(fed.public, [one, other]))
    with torch.no_grad():
        assert torch.equal(found[1], fed.server.model(fed.data.inputs(fed.public)))
    fed.evaluate()
    assert fed.take_log()["validation_accuracy"] >= 0
    assert set(passed) == {(engine, 0), (engine, 1), ("loop", fed.server.index)}


def test_a_run_that_only_counts_has_no_engine(train):
    assert engine_of(train(method="fedavg", engine="native", ledger_only=True)) == "none"


def test_an_engine_is_no_part_of_what_a_run_is(train, tmp_path):
    one, other = (train(tmp_path / e, engine=e) for e in ("loop", "stacked"))
    specs = [read_json(folder / "spec.json") for folder in (one, other)]
    assert specs[0] == specs[1]
    assert not {"engine", "kernel", "scale"} & specs[0].keys()


@pytest.mark.parametrize("engine", ["loop", "stacked", NATIVE])
def test_neither_workers_nor_stops_change_a_bit(train, tmp_path, monkeypatch, engine):
    given = {"method": "fedavg", "engine": engine} | PERCEPTRONS
    whole = train(tmp_path / "whole", **given)
    with stop_after(1, monkeypatch):
        train(tmp_path / "pieces", every=0, workers=3, **given)
    assert same(outcome(whole), outcome(train(tmp_path / "pieces", workers=2, **given)))


def test_a_checkpoint_of_another_engine_is_refused(train, tmp_path, monkeypatch):
    with stop_after(1, monkeypatch):
        train(tmp_path / "x", every=0, engine="loop")
    with refused(": engine loop -> stacked; to start anew, remove ") as told:
        train(tmp_path / "x", engine="stacked")
    assert f"{tmp_path}/x/checkpoint*.safetensors" in str(told.value)
    assert not (tmp_path / "x" / "result.json").exists()
    assert engine_of(train(tmp_path / "x", engine="loop")) == "loop"


@needs_compiler
def test_a_checkpoint_of_another_compiler_is_refused(train, tmp_path, monkeypatch):
    monkeypatch.setattr(native, "compiler_version", lambda: "g++ 12")
    with stop_after(1, monkeypatch):
        train(tmp_path / "x", every=0, engine="native", **PERCEPTRONS)
    monkeypatch.setattr(native, "compiler_version", lambda: "g++ 13")
    with refused(": compiler g++ 12 -> g++ 13; to start anew, remove "):
        train(tmp_path / "x", engine="native", **PERCEPTRONS)


@needs_compiler
def test_a_result_names_the_compiler_where_code_is_compiled(train, tmp_path):
    server = TAUGHT["server"] | {"optimizer": PERCEPTRONS["optimizer"]}
    found = {
        engine: read_json(train(tmp_path / engine, engine=engine, **changes) / "result.json")
        for engine, changes in {
            "native": PERCEPTRONS,
            "auto": TAUGHT | {"server": server},  # the server alone is compiled
            "loop": PERCEPTRONS,
        }.items()
    }
    named = {engine: result["provenance"].get("compiler") for engine, result in found.items()}
    version = compiler_version()
    assert named == {"native": version, "auto": version, "loop": None}
    assert version


def test_a_finished_run_of_another_engine_is_left_alone(train, tmp_path):
    folder = train(tmp_path / "x", engine="loop")
    write_json(tmp_path / "spec.json", SMALL)
    places = ("--spec", str(tmp_path / "spec.json"), "--out", str(folder), "--device", "cpu")
    before = (folder / "result.json").read_bytes()
    done = script("train", *places, "--engine", "stacked", "--data", str(tmp_path), "--quiet")
    assert "is finished" in done.stdout
    assert (folder / "result.json").read_bytes() == before


@pytest.mark.parametrize("engine", ["stacked", NATIVE])
def test_clients_of_a_one_shot_run_do_not_depend_on_workers(digits, train, tmp_path, engine):
    """Nor on whether a job of their own trains them."""
    given = {"rounds": 1, "method": "feddf", "local": {"epochs": 2}} | PERCEPTRONS
    spec = clients_spec(small_spec(**given))
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        train_clients(built(spec, digits, workers=workers, engine=engine), folder)
    one, three = (load_weights(tmp_path / w / "weights.safetensors", spec) for w in ("1", "3"))
    whole = exported_weights(train(engine=engine, **given))
    for i, client in enumerate(one):
        for name, values in client.items():
            assert torch.equal(values, three[i][name])
            assert torch.equal(values, whole[f"client{i}/{name}"])


def test_stacked_clients_that_were_stopped_all_train_again(digits, tmp_path, monkeypatch):
    """A stack of those that are left might round otherwise."""
    spec = clients_spec(small_spec(rounds=1, method="feddf"))
    train_clients(built(spec, digits, engine="stacked"), tmp_path / "whole")
    saved = []

    def dies(path, *_):
        if len(saved) == 2:
            raise KeyboardInterrupt
        saved.append(path)
        return original(path, *_)

    original = stages.save_part
    fed = built(spec, digits, engine="stacked")
    with monkeypatch.context() as patch:
        patch.setattr(stages, "save_part", dies)
        with pytest.raises(KeyboardInterrupt):
            train_clients(fed, tmp_path / "pieces")
    assert len(list((tmp_path / "pieces").glob("part-*"))) == 2
    fed = built(spec, digits, engine="stacked")
    trained, train_private = [], fed.train_private
    monkeypatch.setattr(
        fed, "train_private", lambda: (trained.append(len(fed.clients)), train_private())
    )
    train_clients(fed, tmp_path / "pieces")
    assert trained == [4]
    whole, pieces = (load_file(tmp_path / p / "weights.safetensors") for p in ("whole", "pieces"))
    assert all(torch.equal(whole[name], pieces[name]) for name in whole)
