"""A version of the code leads to the commit that it was, as far as history has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest
from support.calls import ROOT
from support.refusals import refused

from fedlogit.runs.library_code import version_of
from scripts.code_versions import Commit, main, published_facts, table, versions

HEAD = "version,commit,committed,runs,first_started,last_finished\n"


def git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    called = ["git", "-C", str(folder), *identity, *command]
    return subprocess.run(called, check=True, capture_output=True, text=True).stdout.strip()


def commit(root: Path, **texts: str) -> str:
    """Write sources of a package, such as ``methods/a.py`` for `methods_a`; commit them."""
    for name, text in texts.items():
        path = root / "fedlogit" / f"{name.replace('_', '/')}.py" if name != "init" else None
        path = path or root / "fedlogit" / "__init__.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "some")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path) -> Path:
    git(tmp_path, "init", "--quiet", "here")
    return tmp_path / "here"


def version(number: str, **texts: str) -> str:
    names = {"init": "__init__.py", "methods_a": "methods/a.py"}
    return version_of(number, {Path(names[k]): text.encode() for k, text in texts.items()})


def test_a_version_is_of_the_first_commit_that_has_its_sources(checkout):
    init = '__version__ = "1.0"\n'
    first = commit(checkout, init=init, methods_a="one")
    commit(checkout, results_b="no source of a run")
    second = commit(checkout, methods_a="two")
    commit(checkout, methods_a="one")
    found = versions(checkout)
    assert {name: found[name].hash for name in found} == {
        version("1.0", init=init, methods_a="one"): first,
        version("1.0", init=init, methods_a="two"): second,
    }


def test_a_row_says_how_many_runs_a_version_made_and_when():
    facts = [
        {"code_version": "1+b", "started": "2026-01-03", "finished": "2026-01-04"},
        {"code_version": "1+a", "started": "2026-01-02", "finished": "2026-01-05"},
        {"code_version": "1+a", "started": "2026-01-01", "finished": "2026-01-02"},
    ]
    told = table(facts, {"1+a": Commit("f00", "2025-12-31T00:00:00Z")})
    rows = "1+a,f00,2025-12-31T00:00:00Z,2,2026-01-01,2026-01-05\n1+b,,,1,2026-01-03,2026-01-04\n"
    assert told == HEAD + rows


def test_the_end_of_history_is_not_taken_for_all_of_it(checkout, tmp_path):
    commit(checkout, init="1")
    commit(checkout, init="2")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{checkout}", "shallow")
    with refused("has only the end of git's history; git fetch --unshallow"):
        versions(tmp_path / "shallow")


def test_a_folder_without_history_is_refused_in_a_line(tmp_path):
    with refused(f"git rev-parse in {tmp_path}: fatal: not a git repository"):
        versions(tmp_path)


def test_the_page_on_a_runs_files_says_how_many_runs_lead_to_no_commit():
    rows = pd.read_csv(ROOT / "results" / "code_versions.csv", keep_default_na=False)
    lost = rows[rows["commit"] == ""]
    said = f"{len(lost)} of the {len(rows)} versions, of {lost['runs'].sum()} runs"
    page = (ROOT / "docs" / "run-folder.md").read_text(encoding="utf-8")
    assert said in " ".join(page.split())


@pytest.mark.slow
def test_the_committed_file_has_every_published_run():
    rows = pd.read_csv(ROOT / "results" / "code_versions.csv")
    found = pd.Series([fact["code_version"] for fact in published_facts(ROOT)]).value_counts()
    assert dict(zip(rows["version"], rows["runs"], strict=True)) == found.to_dict(), (
        "run make code-versions"
    )


@pytest.mark.slow
def test_the_committed_file_is_what_history_says():
    if not (ROOT / ".git").exists():
        pytest.skip("needs git's history, which a copy of the files lacks")
    if git(ROOT, "rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("needs all of git's history; here is only its end")
    assert main(["--root", str(ROOT), "--check"]) == 0
