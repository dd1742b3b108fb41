"""A result names the commit of the code that made it, where there is one to name."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePath

import pytest
from support.resuming import stop_after

import fedlogit
from fedlogit.files import read_json
from fedlogit.runs.library_code import (
    code_version,
    commit_facts,
    imported_code_version,
    is_source,
)


def git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    called = ["git", "-C", str(folder), *identity, *command]
    return subprocess.run(called, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """Make the library's sources those of a small package in a checkout of one commit."""
    folder = tmp_path / "checkout" / "package"
    (folder / "methods").mkdir(parents=True)
    (folder / "results").mkdir()
    for name in ("__init__.py", "methods/one.py", "results/tables.py"):
        (folder / name).write_text("")
    git(folder.parent, "init", "--quiet")
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "--quiet", "--message", "all")
    monkeypatch.setattr(fedlogit, "__file__", str(folder / "__init__.py"))
    return folder


def test_the_commit_is_named_and_whether_a_runs_sources_differ_from_it(package):
    head = git(package, "rev-parse", "HEAD")
    assert len(head) == 40
    (package / "results" / "tables.py").write_text("# no source of a run")
    assert commit_facts() == {"commit": head, "uncommitted": False}
    (package / "methods" / "one.py").write_text("# edited")
    assert commit_facts() == {"commit": head, "uncommitted": True}


@pytest.mark.parametrize("name", ["new.py", "methods/deep/new.cpp"])
def test_a_source_that_git_does_not_know_counts_as_uncommitted(package, name):
    before = code_version()
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("")
    assert code_version() != before
    assert commit_facts()["uncommitted"]


def test_a_process_names_the_code_that_it_imported_whatever_was_edited_since(package):
    imported_code_version.cache_clear()
    try:
        imported = imported_code_version()
        (package / "methods" / "one.py").write_text("# edited")
        assert imported_code_version() == imported != code_version()
    finally:
        imported_code_version.cache_clear()  # it is of the small package


@pytest.mark.parametrize(
    ("name", "is_of_runs"),
    [
        *((f"{folder}/new.py", True) for folder in ("aggregation", "data", "engine", "federation")),
        *((f"{folder}/new.py", True) for folder in ("methods", "models", "partition", "runs")),
        *((f"engine/native/new.{suffix}", True) for suffix in ("cpp", "h")),
        *((f"{folder}/new.py", False) for folder in ("commands", "papers", "results", "workflow")),
        *(("methods/notes.md", False), ("notes.md", False)),
    ],
)
def test_the_version_of_the_code_is_of_all_that_a_run_executes(package, name, is_of_runs):
    before = code_version()
    (package / name).parent.mkdir(parents=True, exist_ok=True)
    (package / name).write_text("")
    assert is_source(PurePath(name)) == is_of_runs
    assert (code_version() != before) == commit_facts()["uncommitted"] == is_of_runs


def test_a_package_that_is_installed_below_a_checkout_of_something_else_has_no_commit(
    package, monkeypatch
):
    (package.parent / ".venv").mkdir()
    monkeypatch.setattr(fedlogit, "__file__", str(package.parent / ".venv" / "__init__.py"))
    assert commit_facts() == {}


def test_a_hooks_variables_do_not_lead_to_another_repository(package, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert len(commit_facts()["commit"]) == 40


def test_without_git_a_run_has_no_commit(package, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit_facts() == {}


def test_a_run_goes_on_at_another_commit_of_the_same_code(train, tmp_path, monkeypatch):
    facts = {"commit": "a" * 40, "uncommitted": True}
    monkeypatch.setattr("fedlogit.runs.provenance._commit_facts", lambda: facts)
    with stop_after(2, monkeypatch):
        train(tmp_path / "x", every=0, method="uwa")
    monkeypatch.setattr(
        "fedlogit.runs.provenance._commit_facts",
        lambda: {"commit": "b" * 40, "uncommitted": False},
    )
    train(tmp_path / "x", method="uwa")
    found = read_json(tmp_path / "x" / "result.json")["provenance"]
    assert (found["commit"], found["uncommitted"]) == ("b" * 40, False)
