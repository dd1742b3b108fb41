"""What was planned before is planned again without PyTorch, and is the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.calls import ROOT
from support.small import small_spec

from fedlogit.errors import FedlogitError
from fedlogit.papers import load_paper
from fedlogit.papers import resolved as module
from fedlogit.papers.resolved import ResolutionCache, ResolvedRun, resolve_run

PLAN = """
import json, sys
from pathlib import Path
from fedlogit.config import Settings
from fedlogit.papers import Plan, PlanWriter
from fedlogit.workflow import RuleInputs
plan = Plan(Settings.load({"scale": "smoke", "papers": ["fedol"]}, "options"), Path(sys.argv[1]),
            Path(sys.argv[2]))
inputs = RuleInputs(plan, "none")
runs = [run for a in plan.artefacts for run in plan.runs(a)]
digests = [plan.spec_of_run(run).digest() for run in runs]
found = [[run, digest, plan.clients_of(run), inputs.train(run)]
         for run, digest in zip(runs, digests, strict=True)]
writer = PlanWriter(plan)
drawn = [writer.artefact_file(a) for a in plan.artefacts]
print(json.dumps({"torch": "torch" in sys.modules, "found": found, "drawn": drawn}))
"""


def text_of(**changes) -> str:
    return json.dumps(small_spec(**changes).model_dump(mode="json", exclude_defaults=True))


def planned(folder: Path) -> dict:
    command = [sys.executable, "-c", PLAN, str(ROOT / "workflow/papers"), str(folder)]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)


@pytest.mark.slow
def test_planned_again_it_is_the_same_and_pytorch_is_not_imported(tmp_path):
    first, second = planned(tmp_path), planned(tmp_path)
    assert (first.pop("torch"), second.pop("torch")) == (True, False)
    assert first == second
    assert any(clients for _, _, clients, _ in first["found"])  # some are made in stages


def remember(folder: Path, text: str) -> ResolvedRun:
    resolutions = ResolutionCache(folder)
    found = resolutions.resolve(text)
    resolutions.save()
    return found


def refuse(*_: object) -> None:
    raise AssertionError("it should have been remembered")


@pytest.mark.parametrize("method", ["uwa", "fedol"])
def test_what_is_remembered_is_what_was_found(tmp_path, monkeypatch, method):
    text = text_of(method=method, rounds=1)
    found = remember(tmp_path, text)
    assert found == resolve_run(text)
    assert (found.clients is None) == (method == "uwa")
    monkeypatch.setattr(module, "resolve_run", refuse)
    assert ResolutionCache(tmp_path).resolve(text) == found
    with pytest.raises(AssertionError, match="remembered"):
        ResolutionCache(tmp_path).resolve(text_of(method=method, rounds=1, seed=7))


def test_another_library_remembers_nothing_and_takes_the_files_place(tmp_path, monkeypatch):
    text = text_of()
    remember(tmp_path, text)
    (before,) = tmp_path.iterdir()
    monkeypatch.setattr(module, "_library_digest", lambda: "another")
    remember(tmp_path, text)
    (after,) = tmp_path.iterdir()
    assert (after.name, before.exists()) == ("completed-another.json", False)


def test_a_change_of_any_module_is_another_library(tmp_path, monkeypatch):
    (tmp_path / "methods").mkdir()
    source = tmp_path / "methods/uwa.py"
    source.write_text("floor = 1e-6")
    monkeypatch.setattr(module.fedlogit, "__file__", str(tmp_path / "__init__.py"))
    before = module._library_digest()
    assert module._library_digest() == before
    source.write_text("floor = 1e-5")
    assert module._library_digest() != before


def test_a_damaged_file_is_made_again(tmp_path):
    text = text_of()
    found = remember(tmp_path, text)
    (path,) = tmp_path.iterdir()
    whole = path.read_text()
    path.write_text(whole.replace("digits", "mnist!"))
    assert remember(tmp_path, text) == found
    assert path.read_text() == whole


def test_components_from_outside_are_resolved_anew(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text("from fedlogit.methods.average import Average as Own")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    remember(tmp_path / "ours", text_of(method="fedlogit.methods.average:Average"))
    remember(tmp_path / "others", text_of(method="own:Own"))
    assert (tmp_path / "ours").exists()  # by another name
    assert not (tmp_path / "others").exists()


def test_a_function_from_outside_is_looked_for_anew_when_its_file_has_changed(
    tmp_path, monkeypatch
):
    source = tmp_path / "rule.py"
    source.write_text("def mean(logits): return logits.mean(dim=0)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = text_of(method="aggregator(function='rule:mean')")
    found = remember(tmp_path / "plan", text)
    monkeypatch.setattr(module, "resolve_run", refuse)
    assert ResolutionCache(tmp_path / "plan").resolve(text) == found
    source.write_text("def average(logits): return logits.mean(dim=0)")
    with pytest.raises(AssertionError, match="remembered"):
        ResolutionCache(tmp_path / "plan").resolve(text)


def test_a_mistake_is_told_each_time(tmp_path):
    for _ in range(2):
        with pytest.raises(FedlogitError, match="needs a public set"):
            remember(tmp_path, text_of(public=None))


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "plan").write_text("a file where the folder should be")
    assert remember(tmp_path / "plan", text_of()) == resolve_run(text_of())


def test_a_paper_is_checked_once(tmp_path):
    paper = load_paper("celm", ROOT / "workflow/papers")
    for expected in ([paper], []):
        checked: list[object] = []
        resolutions = ResolutionCache(tmp_path)
        resolutions.check(paper, checked.append)
        resolutions.save()
        assert checked == expected
