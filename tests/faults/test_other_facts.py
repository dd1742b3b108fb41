"""A stopped run goes on only with the code, data and libraries that it began with."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.calls import script
from support.refusals import refused
from support.resuming import stop_after
from support.small import SMALL, small_spec
from test_kill import snakemake, target

import fedlogit
from fedlogit import methods
from fedlogit.files import file_digest, read_json, write_json
from fedlogit.runs.checkpoint import load_checkpoint, save_checkpoint
from fedlogit.runs.context import RunOptions
from fedlogit.runs.external_code import external_code
from fedlogit.runs.imported_sources import imported_sources
from fedlogit.runs.library_code import imported_code_version
from fedlogit.runs.provenance import differences
from fedlogit.runs.run import run
from fedlogit.runs.setup import divide
from fedlogit.runs.tensors import read_tensors, save_tensors, tensor_digest

__all__ = ["target"]
MEAN = "def mean(logits):\n    return logits.mean(0).softmax(1)\n"


@pytest.fixture
def copied(tmp_path, monkeypatch) -> Path:
    """Make the version of the code that of a copy of its sources, which a test may edit."""
    package = Path(fedlogit.__file__).parent
    copy = shutil.copytree(package, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fedlogit, "__file__", str(copy / "__init__.py"))
    imported_code_version.cache_clear()
    yield copy
    imported_code_version.cache_clear()


def test_code_edited_between_stop_and_resume(train, tmp_path, monkeypatch, copied):
    with stop_after(2, monkeypatch):
        train(tmp_path / "x", every=0, method="uwa")
    source = copied / "methods" / "uwa.py"
    source.write_text(source.read_text() + "# edited\n")
    imported_code_version.cache_clear()  # as in the process that resumes
    with refused("code_version 0.") as told:
        train(tmp_path / "x", method="uwa")
    assert f"remove {tmp_path}/x/checkpoint*.safetensors" in str(told.value)
    assert not (tmp_path / "x" / "result.json").exists()


def test_the_same_code_goes_on(train, tmp_path, monkeypatch, copied, capsys):
    with stop_after(2, monkeypatch):
        train(tmp_path / "x", every=0, method="uwa")
    (copied / "methods" / "__pycache__").mkdir()  # no source
    train(tmp_path / "x", method="uwa")
    assert "goes on after round 2 of 3" in capsys.readouterr().err
    assert "earlier_devices" not in read_json(tmp_path / "x" / "result.json")["provenance"]


def _go(digits, folder, seed=0, **facts) -> None:
    """Train the small spec on a division of another seed, or on a data set with other facts."""
    spec, data = small_spec(), replace(digits, **facts)
    split = divide(small_spec(seed=seed), data)
    options = RunOptions(torch.device("cpu"), checkpoint_seconds=0, progress=False)
    run(spec, methods.get(spec.method), data, split, folder, options)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "split_digest "),
        ({"digest": "0" * 64}, " -> 000000000000…"),
        ({"tokenizer": "another"}, "tokenizer_digest none -> another"),
        ({"mean": (0.25,)}, "normalised_by "),
        ({"note": "another"}, "-> another"),
    ],
)
def test_data_or_division_changed_between_stop_and_resume(
    digits, tmp_path, monkeypatch, change, said
):
    with stop_after(1, monkeypatch):
        _go(digits, tmp_path / "x")
    with refused(said):
        _go(digits, tmp_path / "x", **change)


def test_another_library_is_refused(train, tmp_path, monkeypatch):
    with stop_after(1, monkeypatch):
        train(tmp_path / "x", every=0)
    was = np.__version__
    monkeypatch.setattr(np, "__version__", "99.0")
    with refused(f": numpy {was} -> 99.0; to start anew"):
        train(tmp_path / "x")


def test_a_users_own_aggregator_edited_in_between(train, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_mean.py").write_text(MEAN)
    changes = {"method": "aggregator(function='own_mean:mean')"}
    with stop_after(1, monkeypatch):
        train(tmp_path / "x", every=0, **changes)
    (tmp_path / "own_mean.py").write_text(MEAN.replace("mean(0)", "mul(2).mean(0)"))
    monkeypatch.delitem(sys.modules, "own_mean")  # as in the process that resumes
    with refused("own_code "):
        train(tmp_path / "x", **changes)


def test_a_run_names_the_own_code_that_its_process_imported(
    train, tmp_path, monkeypatch, own_modules
):
    """In a process of many runs, a file that is edited in between is not what is executed."""
    (tmp_path / "own_mean.py").write_text(MEAN)
    changes = {"method": "aggregator(function='own_mean:mean')", "rounds": 1}

    def own_code(folder: Path, seed: int) -> str:
        trained = train(folder, seed=seed, **changes)
        return read_json(trained / "result.json")["provenance"]["own_code"]["own_mean"]

    first = own_code(tmp_path / "x", 1)
    (tmp_path / "own_mean.py").write_text(MEAN.replace("mean(0)", "mul(2).mean(0)"))
    assert own_code(tmp_path / "y", 2) == first
    monkeypatch.delitem(sys.modules, "own_mean")
    assert own_code(tmp_path / "z", 3) == file_digest(tmp_path / "own_mean.py")[:12] != first


@pytest.mark.parametrize(
    ("module", "imports", "helper"),
    [
        ("own_mean", "import own_helper", "own_helper.py"),
        ("own_mean", "def f():\n    from own_helper import x", "own_helper.py"),
        ("own_mean", "import own_lab.first", "own_lab/second.py"),
        ("own_lab.mean", "from . import first", "own_lab/second.py"),
        ("own_lab.deep.mean", "from ..first import y", "own_lab/second.py"),
        ("own_lab.deep.mean", "", "own_lab/__init__.py"),
    ],
)
def test_what_a_users_own_module_imports_is_own_code(
    tmp_path, own_modules, module, imports, helper
):
    (tmp_path / "own_lab/deep").mkdir(parents=True)
    for name in ("own_helper", "own_lab/__init__", "own_lab/deep/__init__", "unrelated"):
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "own_lab/first.py").write_text("from own_lab.second import x\ny = x\n")
    (tmp_path / "own_lab/second.py").write_text("import own_lab.first, math, fedlogit.rng\nx = 1\n")
    file = tmp_path / f"{module.replace('.', '/')}.py"
    file.write_text(f"{imports}\n{MEAN}")
    was = external_code(call := {"method": f"aggregator(function='{module}:mean')"})
    (tmp_path / "unrelated.py").write_text("x = 2\n")
    assert external_code(call) == was
    (tmp_path / helper).write_text("x = 2\n")
    assert external_code(call).keys() == was.keys()
    assert external_code(call) != was


def test_an_installed_module_is_own_code_without_what_it_imports(tmp_path, own_modules):
    """A library has versions of its own, and what imports nothing is known by its file alone."""
    assert len(imported_sources("json", Path(json.__file__))) == 1
    (tmp_path / "own_mean.py").write_text(MEAN)
    found = external_code({"method": "aggregator(function='own_mean:mean')"})
    assert found == {"own_mean": file_digest(tmp_path / "own_mean.py")[:12]}


def test_code_of_the_package_and_texts_with_a_colon_are_not_own_code():
    average = "fedlogit.aggregation.average:average_probabilities"
    spec = small_spec(method=f"aggregator(function={average!r})")
    assert external_code(spec.model_dump(mode="json")) == {}
    assert external_code({"dataset": "no_such_module:x"}) == {}


def test_a_long_text_is_searched_for_own_code_in_no_time():
    begin = time.monotonic()
    assert external_code({"method": "a" * 100_000, "models": ["b." * 50_000]}) == {}
    assert time.monotonic() - begin < 20  # about 70, if it took the square of their length


def test_own_code_is_found_in_a_call_and_in_its_parameters(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_mean.py").write_text(MEAN)
    written = external_code({"method": "aggregator(function='own_mean:mean')"})
    assert written == external_code({"method": {"params": {"function": "own_mean:mean"}}})
    assert list(written) == ["own_mean"]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"device_type": "cuda"}, {"device_type": "cpu"}, ": device_type cuda -> cpu; to"),
        ({"f32_matmul": "onednn"}, {"f32_matmul": "default"}, "f32_matmul onednn -> default"),
        ({}, {"code_version": "0.1"}, "code_version none -> 0.1"),
    ],
)
def test_a_checkpoint_of_other_facts(federation, tmp_path, before, now, said):
    fed, other = federation(), federation()
    fed.facts, other.facts, fed.round = before, now, 1
    save_checkpoint(tmp_path, fed, [])
    with refused(said):
        load_checkpoint(tmp_path, other)


def test_a_checkpoint_from_before_facts_were_kept(federation, tmp_path):
    fed = federation()
    fed.round = 1
    save_checkpoint(tmp_path, fed, [])
    path = tmp_path / "checkpoint.safetensors"
    tensors, header = read_tensors(path, "checkpoint")
    note = json.loads(header["note"])
    del note["facts"], note["devices"]
    old = {"note": json.dumps(note), "digest": tensor_digest(tensors, json.dumps(note))}
    save_tensors(path, tensors, header | old)
    with refused("does not say by which code"):
        load_checkpoint(tmp_path, federation())


def test_long_facts_are_shortened():
    said = differences({"split_digest": "a" * 64, "same": [1]}, {"same": (1,)})
    assert said == "split_digest aaaaaaaaaaaa… -> none"


def test_another_model_of_cpu_goes_on_and_is_named(train, tmp_path, monkeypatch):
    """As where Slurm puts a job back into its queue and another node takes it."""
    name = "fedlogit.runs.provenance.device_name"
    for rounds, model in ((1, "CPU A"), (2, "CPU B")):
        monkeypatch.setattr(name, lambda device, model=model: model)
        with stop_after(rounds, monkeypatch):
            train(tmp_path / "x", every=0)
    train(tmp_path / "x", every=0)
    found = read_json(tmp_path / "x" / "result.json")["provenance"]
    assert (found["earlier_devices"], found["device"]) == (["CPU A"], "CPU B")
    (tmp_path / "x" / "result.json").unlink()
    monkeypatch.setattr(name, lambda device: "CPU C")
    train(tmp_path / "x")  # a finished result is put back on any
    assert read_json(tmp_path / "x" / "result.json")["provenance"] == found


def test_snakemake_says_so_and_starts_nothing_anew(python, tmp_path, monkeypatch, target):
    """As after a preempted job and a `git pull`: the user decides, the checkpoint stays."""
    run, spec = target
    folder, code = tmp_path / run, "fedlogit.runs.provenance.imported_code_version"
    write_json(tmp_path / "spec.json", spec)
    places = ("--spec", str(tmp_path / "spec.json"), "--out", str(folder), "--device", "cpu")
    with monkeypatch.context() as patch, stop_after(1, monkeypatch):
        patch.setattr(code, lambda: "0.0.1+older")
        script("train", *places, "--data", str(tmp_path), "--checkpoint-seconds", "0", "--quiet")
    saved = (folder / "checkpoint.safetensors").read_bytes()
    said, _ = snakemake(tmp_path, f"{run}/result.json", python=python).communicate(timeout=240)
    assert "checkpoint.safetensors cannot be resumed: code_version 0.0.1+older -> 0." in said
    assert f"to start anew, remove {run}/checkpoint*.safetensors" in said
    assert (folder / "checkpoint.safetensors").read_bytes() == saved
    assert not (folder / "result.json").exists()


def test_restart_forgets_the_checkpoint(train, tmp_path, monkeypatch, copied):
    with stop_after(2, monkeypatch):
        train(tmp_path / "x", every=0)
    (copied / "rng.py").write_text("# edited\n")
    imported_code_version.cache_clear()  # as in the process that resumes
    write_json(tmp_path / "spec.json", SMALL)
    places = ("--spec", str(tmp_path / "spec.json"), "--out", str(tmp_path / "x"))
    command = (*places, "--data", str(tmp_path), "--device", "cpu", "--quiet")
    stopped = script("train", *command)
    assert stopped.returncode == 2
    assert stopped.stderr.count("\n") == 1
    done = script("train", *command, "--restart")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "x" / "rounds.csv").read_text().splitlines()) == 4
    done = script("train", *command, "--restart")
    assert done.stderr == f"error: --restart: {tmp_path}/x is finished; remove it to train anew\n"
    (tmp_path / "x" / "result.json").unlink()
    assert "put back" in script("train", *command).stderr
    (tmp_path / "x" / "result.json").unlink()
    done = script("train", *command, "--restart")
    assert "finished, test accuracy" in done.stdout
    assert "put back" not in done.stderr
