"""A run may name code: whoever reads it never imports that, and training never from data."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.cached_runs import finished, project
from support.calls import RUNS, script
from support.sealed import seal
from support.small import small_spec

from fedlogit import methods
from fedlogit.component import ComponentRef
from fedlogit.errors import FedlogitError
from fedlogit.files import read_json, write_json
from fedlogit.papers import run_dir
from fedlogit.spec import RunSpec

__all__ = ["finished", "project"]
PAYLOAD = "open('executed', 'w').close()\nPayload = 1\n"


@pytest.fixture(params=["method", "parameter"])
def planted(project, finished, monkeypatch, request) -> Path:
    """A finished run that names code beside it, where Python would find it."""
    folder = finished()
    spec = read_json(folder / "spec.json")
    for package in (Path("results"), RUNS):
        (package / "payload.py").write_text(PAYLOAD)
    code = "results.runs.payload:Payload"
    spec["method"] = {
        "method": {"name": code, "params": {"x": 1}},
        "parameter": {"name": "aggregator", "params": {"function": code}},
    }[request.param]
    changed = RunSpec.read(spec, "test")
    target = RUNS / run_dir(changed)
    target.parent.mkdir(parents=True)
    folder.rename(target)
    write_json(target / "spec.json", spec)
    result = read_json(target / "result.json")
    result["provenance"]["spec_digest"] = changed.digest()
    write_json(target / "result.json", result)
    seal(target)
    monkeypatch.syspath_prepend(str(project))
    return target


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cached", "publish"])
def test_reading_a_run_never_imports_what_it_names(planted, name):
    Path("results/runs.dvc").write_text("outs: []\n")
    script(name)
    assert not Path("executed").exists()
    assert not [module for module in sys.modules if module.startswith("results")]


@pytest.mark.parametrize("name", ["results.runs.payload:Payload", "data.payload:Payload"])
def test_training_never_imports_from_results_or_data(planted, name):
    with pytest.raises(FedlogitError, match="which holds data; put code elsewhere"):
        methods.get(ComponentRef(name=name))
    aggregator = ComponentRef(name="aggregator", params={"function": name})
    spec = small_spec(method="feddf", rounds=1)
    for method in (ComponentRef(name=name), aggregator):
        with pytest.raises(FedlogitError, match="which holds data; put code elsewhere"):
            methods.resolve(spec.model_copy(update={"method": method}))
    assert not Path("executed").exists()
